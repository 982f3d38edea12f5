//! Runs programs for a machine: natively, in QEMU's user mode, or in a kernel that QEMU boots.
//! Arguments, environment, output and exit status pass through.

mod boot;
mod initramfs;
mod process_group;

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use guest_init::Status;
use serde::{Deserialize, Serialize};

use crate::programs::Program;
pub(crate) use boot::dump;
pub(crate) use process_group::end_groups_at_signals;

/// A [`Plan`] in JSON, for `cargo xtask runner`.
pub(crate) const PLAN_VARIABLE: &str = "VDSO_TIME_RUNNER_PLAN";

/// The seconds that a program may run.
pub(crate) const TIMEOUT_VARIABLE: &str = "VDSO_TIME_GUEST_TIMEOUT";
const TIMEOUT: &str = "120";

/// The exit code if the machine failed or the program ran too long, as timeout(1) has it.
const RUNNER_FAILED: u8 = 125;

/// How programs are run.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct Plan {
    /// QEMU and its arguments; empty: natively. For a kernel, all arguments except the initramfs.
    pub(crate) qemu: Vec<String>,
    /// For a kernel: the first process.
    pub(crate) init: Option<PathBuf>,
    /// For a kernel: the seconds since the Epoch that init sets the wall clock to.
    pub(crate) clock: Option<i64>,
    /// Variables of the programs, besides those of this process.
    #[serde(default)]
    pub(crate) environment: Vec<(String, String)>,
}

/// Programs to run one after the other, in one boot of a kernel.
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) programs: &'a [Program],
    pub(crate) out: File,
    pub(crate) err: File,
    /// How long each program may run.
    pub(crate) limit: Duration,
}

impl<'a> Run<'a> {
    /// The output goes to this process's own.
    pub(crate) fn new(plan: &'a Plan, programs: &'a [Program]) -> Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let err = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let seconds = env::var(TIMEOUT_VARIABLE).unwrap_or_else(|_| TIMEOUT.into());
        // A deadline of more seconds can overflow.
        let seconds: u32 =
            seconds.parse().with_context(|| format!("{TIMEOUT_VARIABLE}={seconds} is not a number"))?;
        Ok(Self { plan, programs, out, err, limit: Duration::from_secs(seconds.into()) })
    }

    /// Calls `ended` after each program.
    pub(crate) fn run(&self, mut ended: impl FnMut(&Program, Status)) -> Result<()> {
        if let Some(init) = &self.plan.init {
            return boot::boot(self, init, ended).map(drop);
        }
        for program in self.programs {
            let mut words = self.plan.qemu.iter().chain([&program.path]).chain(&program.arguments);
            let mut command = Command::new(words.next().context("no program is given")?);
            command.args(words).current_dir(&program.folder).envs(self.plan.environment.iter().cloned());
            command.stdout(self.out.try_clone()?).stderr(self.err.try_clone()?);
            if io::stdin().is_terminal() {
                // A background process group that reads from the terminal is stopped.
                command.stdin(Stdio::null());
            }
            let start = Instant::now();
            let status = process_group::ProcessGroup::start(&mut command)?.wait(self.limit)?;
            let status = status.ok_or_else(|| anyhow!(timed_out(&program.path, self.limit)))?;
            ended(program, Status::new(status, start.elapsed()));
        }
        Ok(())
    }
}

fn timed_out(program: &str, limit: Duration) -> String {
    format!("{program}: still running after {} s; {TIMEOUT_VARIABLE}=SECONDS allows more", limit.as_secs())
}

/// `cargo xtask runner PROGRAM ARGUMENTS...`, which cargo starts in place of a program.
pub(crate) fn run_for_cargo(words: &[String]) -> ExitCode {
    match try_run_for_cargo(words) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("xtask runner: {error:#}");
            ExitCode::from(RUNNER_FAILED)
        }
    }
}

fn try_run_for_cargo(words: &[String]) -> Result<u8> {
    process_group::end_with_parent()?;
    end_groups_at_signals()?;
    let plan = env::var(PLAN_VARIABLE)
        .with_context(|| format!("{PLAN_VARIABLE} is not set; `cargo xtask on MACHINE` sets it"))?;
    let plan = serde_json::from_str(&plan).with_context(|| format!("{PLAN_VARIABLE}={plan}"))?;
    let (path, arguments) = words.split_first().context("no program is given")?;
    let path = std::path::absolute(path)?.to_str().context("the program's path is not UTF-8")?.to_owned();
    let program = Program { path, folder: env::current_dir()?, arguments: arguments.into() };
    let mut code = RUNNER_FAILED;
    Run::new(&plan, &[program])?.run(|_, status| code = status.code)?;
    Ok(code)
}
