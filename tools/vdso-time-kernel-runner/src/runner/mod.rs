//! Runs programs for a machine: natively, in QEMU's user mode, or in a kernel that QEMU boots.
//! Arguments, environment, output and exit status pass through.

mod boot;
mod files;
mod initramfs;
mod libtest;
mod named;

use std::env;
use std::fs::File;
use std::io::{self, BufRead};
use std::os::fd::AsFd as _;
use std::path::{self, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::protocol::exit_code;
use crate::{sigchld, step};

/// The environment variable that contains a [`Plan`] in JSON. The command `on` sets it for the
/// command `runner`, which cargo starts.
pub(crate) const PLAN_VARIABLE: &str = "VDSO_TIME_RUNNER_PLAN";

/// The environment variable that sets how many seconds a program may run.
pub(crate) const TIMEOUT_VARIABLE: &str = "VDSO_TIME_GUEST_TIMEOUT";
/// How many seconds a program may run if [`TIMEOUT_VARIABLE`] is not set.
const TIMEOUT: u32 = 120;

/// The environment variable that sets the minimum memory of a guest in MiB.
pub(crate) const MEMORY_VARIABLE: &str = "VDSO_TIME_GUEST_MEMORY";
/// The minimum memory of a guest in MiB if [`MEMORY_VARIABLE`] is not set. This is enough for most
/// tests.
const MEMORY: u32 = 512;

/// The exit code if the machine failed or the program ran too long. timeout(1) uses the same code
/// for its own failure.
const RUNNER_FAILED: u8 = 125;

/// How to run programs.
#[derive(Clone, Default, Deserialize, Serialize)]
pub struct Plan {
    /// QEMU and its arguments; empty if the program runs natively. For a kernel, the arguments for
    /// the memory, the initramfs and the kernel's command line are not included: `boot` adds them.
    pub(crate) qemu: Vec<String>,
    /// For a kernel: its arguments.
    #[serde(default)]
    pub(crate) append: String,
    /// For a kernel: the address of the initramfs; `None` where QEMU chooses it.
    pub(crate) initrd: Option<u64>,
    /// For a kernel: the bytes of a page.
    #[serde(default)]
    pub(crate) page: u64,
    /// For a kernel: the first process.
    pub(crate) init: Option<PathBuf>,
    /// For a kernel: the program that provides the guest's shell and usual commands.
    #[serde(default)]
    pub(crate) busybox: Option<PathBuf>,
    /// For a kernel: the seconds since the Epoch that init sets the wall clock to.
    pub(crate) clock: Option<i64>,
    /// Variables for the programs, in addition to the variables of this process.
    #[serde(default)]
    pub(crate) environment: Vec<(String, String)>,
}

impl Plan {
    /// Sets a variable of the programs.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.into(), value.into()));
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    pub(crate) path: String,
    pub(crate) arguments: Vec<String>,
}

impl Program {
    /// Creates a program from its path and its arguments.
    fn new(words: &[String]) -> Result<Self> {
        let (path, arguments) = words.split_first().context("no program is given")?;
        let path = path::absolute(path)?
            .to_str()
            .context("the program's path is not UTF-8")?
            .to_owned();
        Ok(Self {
            path,
            arguments: arguments.into(),
        })
    }
}

/// Programs to run one after the other, in one boot of a kernel.
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) programs: &'a [Program],
    /// The working directory. A guest gets a copy.
    pub(crate) directory: PathBuf,
    pub(crate) out: File,
    pub(crate) err: File,
    /// How long each program may run.
    pub(crate) limit: Duration,
    /// For a kernel: the guest's minimum memory in MiB.
    pub(crate) memory: u32,
}

impl<'a> Run<'a> {
    /// Creates a run with the output and the working directory of this process.
    pub(crate) fn new(plan: &'a Plan, programs: &'a [Program]) -> Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let err = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        // The number of seconds has 32 bits, because with a larger number the deadline could
        // overflow.
        let seconds = number(TIMEOUT_VARIABLE)?.unwrap_or(TIMEOUT);
        let memory = number(MEMORY_VARIABLE)?.unwrap_or(MEMORY);
        Ok(Self {
            plan,
            programs,
            directory: env::current_dir()?,
            out,
            err,
            limit: Duration::from_secs(seconds.into()),
            memory,
        })
    }

    /// Runs the programs, and calls `ended` after each.
    pub(crate) fn run(&self, mut ended: impl FnMut(&Program, u8)) -> Result<()> {
        if let Some(init) = &self.plan.init {
            return boot::boot(self, init, ended);
        }
        for program in self.programs {
            let child = self.command(program)?.spawn();
            let mut process = Process(child.context(NOT_STARTED)?);
            let Some(status) = process.wait(self.limit)? else {
                bail!(timed_out(&program.path, self.limit));
            };
            ended(program, exit_code(status));
        }
        Ok(())
    }

    /// Returns the command that runs the program here: with QEMU, or natively.
    fn command(&self, program: &Program) -> Result<Command> {
        let mut words = self.plan.qemu.clone();
        words.push(program.path.clone());
        words.extend(program.arguments.iter().cloned());
        let mut command = ends_with_this_process(&words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.directory)
            .envs(self.plan.environment.iter().cloned())
            .stdout(self.out.try_clone()?)
            .stderr(self.err.try_clone()?);
        Ok(command)
    }
}

/// Returns the number in a variable, or `None` if the variable is not set.
fn number(variable: &str) -> Result<Option<u32>> {
    let Ok(text) = env::var(variable) else {
        return Ok(None);
    };
    let number = text.parse();
    let number = number.with_context(|| format!("{variable}={text} is not a number"))?;
    Ok(Some(number))
}

/// The error if a command of [`ends_with_this_process`] cannot be started.
const NOT_STARTED: &str = "cannot start setpriv";

/// Returns a command whose program the kernel kills when this process ends, however it ends.
fn ends_with_this_process(program: &str) -> Command {
    let mut command = sigchld::inherit("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// A program that is killed when this is dropped.
struct Process(Child);

impl Process {
    /// Waits for the program to end. Returns `None` if it is still running after `limit`.
    fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        loop {
            let status = self.0.try_wait()?;
            if status.is_some() || Instant::now() >= deadline {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error is ignored, because the program may have ended already.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn timed_out(program: &str, limit: Duration) -> String {
    format!(
        "{program}: still running after {} s; {TIMEOUT_VARIABLE}=SECONDS allows more",
        limit.as_secs()
    )
}

/// Runs the program that cargo names. Without a plan, uses the one in the environment.
pub fn run_for_cargo(words: &[String], plan: Option<Plan>) -> ExitCode {
    match try_run_for_cargo(words, plan) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            step(&format!("{error:#}"));
            ExitCode::from(RUNNER_FAILED)
        }
    }
}

/// Runs programs one after the other. Each line of `list` is a program with its arguments, in JSON.
/// After each program, prints its exit code and path.
pub fn run_all(plan: &Plan, list: impl BufRead) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let mut programs = Vec::new();
    for line in list.lines() {
        let words: Vec<String> = serde_json::from_str(&line?)?;
        programs.push(Program::new(&words)?);
    }
    Run::new(plan, &programs)?.run(|program, code| println!("\n[exit {code}] {}", program.path))
}

fn inherited_plan() -> Result<Plan> {
    let plan = env::var(PLAN_VARIABLE)
        .with_context(|| format!("{PLAN_VARIABLE} is not set; `on MACHINE` sets it"))?;
    serde_json::from_str(&plan).with_context(|| format!("{PLAN_VARIABLE}={plan}"))
}

fn try_run_for_cargo(words: &[String], plan: Option<Plan>) -> Result<u8> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let plan = plan.map_or_else(inherited_plan, Ok)?;
    let program = Program::new(words)?;
    let mut code = RUNNER_FAILED;
    Run::new(&plan, &[program])?.run(|_, ended| code = ended)?;
    Ok(code)
}
