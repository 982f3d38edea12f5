//! A machine made ready: its compiler, linker, emulator and kernel, fetched where they are missing.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use xshell::{Cmd, Shell};

use crate::machine::{Boot, Machine, Runner};
use crate::runner::{PLAN_VARIABLE, Plan};
use crate::targets::Change;
use crate::toolchain::Compiler;
use crate::{name, tools, workspace};

/// The flag of rustc for a program that is linked statically.
const STATIC: &str = "-Ctarget-feature=+crt-static";

pub struct Setup {
    compiler: Compiler,
    target_folder: &'static str,
    /// The environment of cargo.
    variables: Vec<(String, OsString)>,
    /// The flags of rustc for a shared library.
    shared_rustflags: String,
    pub plan: Plan,
}

impl Setup {
    /// Fetches and builds what is missing.
    pub fn new(machine: &Machine) -> Result<Self> {
        let arch = machine.arch;
        let is_foreign = arch.name != env::consts::ARCH;
        // The downloads, which a mirror may lack, come before the compilation, which takes minutes.
        let boot = match &machine.runner {
            Runner::Kernel(boot) => Some(boot_plan(boot)?),
            Runner::Native | Runner::Emulator => None,
        };
        let compiler = Compiler::for_target(arch.triple)?;
        let is_static = machine.is_static();
        // The flags differ. In one folder cargo would compile everything again at each change
        // between them.
        let target_folder = if is_static { "on-static" } else { "on" };
        let mut setup = Self {
            compiler,
            target_folder,
            variables: Vec::new(),
            shared_rustflags: shared_rustflags(machine),
            plan: Plan::default(),
        };
        setup.set("CARGO_BUILD_TARGET", arch.triple);
        let linkage = if is_static { STATIC } else { "" };
        let rustflags = format!("{} {linkage}", setup.shared_rustflags);
        setup.set("RUSTFLAGS", rustflags);
        if is_static {
            // A guest holds all programs in memory, and the standard library's debug info is large.
            setup.set("CARGO_PROFILE_DEV_STRIP", "debuginfo");
            setup.set("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
        }
        if (is_foreign || is_static) && env::var_os("CARGO_PROFILE_DEV_DEBUG").is_none() {
            // Without it the tests compile in three quarters of the time.
            setup.set("CARGO_PROFILE_DEV_DEBUG", "false");
        }
        if machine.runner != Runner::Native {
            // Emulated code is ten times slower. Debug assertions stay.
            setup.set("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        }
        let gcc = if is_foreign {
            Some(tools::gcc(arch)?)
        } else {
            None
        };
        if let Some(gcc) = &gcc {
            setup.set(&variable(arch.triple, "LINKER"), &gcc.program);
        }
        match boot {
            Some(boot) => {
                let init = Some(setup.guest_init(arch.triple)?);
                setup.plan = Plan { init, ..boot };
            }
            None if machine.runner == Runner::Native => {}
            None => {
                setup
                    .plan
                    .qemu
                    .push(tools::qemu_user(arch)?.display().to_string());
                if let Some(gcc) = gcc {
                    setup
                        .plan
                        .qemu
                        .extend(["-L".into(), gcc.libraries.display().to_string()]);
                }
                // QEMU can hang when threads start at the same time.
                let threads = env::var("RUST_TEST_THREADS").unwrap_or_else(|_| "1".into());
                setup
                    .plan
                    .environment
                    .push(("RUST_TEST_THREADS".into(), threads));
            }
        }
        if machine.runner != Runner::Native {
            let what = if machine.runner == Runner::Emulator {
                "user"
            } else {
                "kernel"
            };
            setup
                .plan
                .environment
                .push(("VDSO_TIME_EMULATED".into(), what.into()));
        }
        setup.set(PLAN_VARIABLE, serde_json::to_string(&setup.plan)?);
        if machine.runner != Runner::Native {
            // cargo splits a runner at spaces, which a path may contain. So it is found by PATH.
            let program = env::current_exe()?;
            let folders = env::var_os("PATH").unwrap_or_default();
            let folders = program
                .parent()
                .map(PathBuf::from)
                .into_iter()
                .chain(env::split_paths(&folders));
            setup.set("PATH", env::join_paths(folders)?);
            setup.set(
                &variable(arch.triple, "RUNNER"),
                format!("{} runner", name()),
            );
        }
        Ok(setup)
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    /// Returns cargo, which builds for the machine and runs programs on it.
    pub fn cargo<'a>(&self, sh: &'a Shell) -> Cmd<'a> {
        let cargo = self.compiler.cargo(sh, self.target_folder);
        cargo.envs(self.variables.iter().map(|(name, value)| (name, value)))
    }

    /// Returns cargo with these arguments of a user.
    ///
    /// cargo makes no shared library with `+crt-static` (`cargo rustc --crate-type cdylib`: "does
    /// not support these crate types"). Such a library is not run here, so it is linked with the
    /// target's shared libc.
    pub fn cargo_for<'a>(&self, sh: &'a Shell, arguments: &[String]) -> Cmd<'a> {
        let cargo = self.cargo(sh).args(arguments);
        if arguments.iter().any(|argument| argument == "cdylib") {
            return cargo.env("RUSTFLAGS", &self.shared_rustflags);
        }
        cargo
    }

    /// Builds a guest's first process like its programs, from the sources that this program is of.
    fn guest_init(&self, triple: &str) -> Result<PathBuf> {
        let sh = Shell::new()?;
        sh.change_dir(env!("CARGO_MANIFEST_DIR"));
        let features = [
            "--no-default-features",
            "--features",
            "guest",
            "--bin",
            "guest-init",
        ];
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let cargo = self
            .cargo(&sh)
            .args(["build", "--quiet", "--manifest-path", manifest])
            .args(features);
        cargo
            .run()
            .context("cannot build init; if its sources are gone, install this program again")?;
        Ok(workspace::target()
            .join(self.target_folder)
            .join(triple)
            .join("debug/guest-init"))
    }
}

/// QEMU's command line for a boot.
fn boot_plan(
    Boot {
        guest,
        kernel,
        options,
    }: &Boot,
) -> Result<Plan> {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut machine = words(&guest.machine);
    let mut append = format!("console={} quiet panic=-1", guest.console);
    let mut more = Vec::new();
    // The kernel starts in 1970 if the driver of the clock chip is a module.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let mut clock = Some(now).filter(|_| guest.name == "loong64");
    for option in options {
        match &option.change {
            Change::Kernel(argument) => append.extend([" ", argument]),
            Change::Qemu(arguments) => more.extend(words(arguments)),
            Change::Board { qemu, tree, from } => {
                let tree = tools::guest(guest, from)?.join(tree).display().to_string();
                machine = [words(qemu), vec!["-dtb".into(), tree]].concat();
            }
            Change::Clock(seconds) => clock = Some(*seconds),
        }
    }
    let files = tools::guest(guest, kernel)?;
    let image = files.join("vmlinuz").display().to_string();
    let program = tools::qemu_system(guest.qemu)?.display().to_string();
    let usual = [
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-serial",
        "stdio",
    ];
    let boot = ["-kernel", &image, "-append", &append];
    let qemu = [vec![program], words(&usual), machine, more, words(&boot)].concat();
    Ok(Plan {
        qemu,
        busybox: Some(files.join("busybox")),
        clock,
        ..Plan::default()
    })
}

fn shared_rustflags(machine: &Machine) -> String {
    let inherited = env::var("RUSTFLAGS").unwrap_or_default();
    format!("{inherited} {}", machine.arch.rustflags)
}

/// Returns the environment variable of a target's setting in cargo.
fn variable(triple: &str, setting: &str) -> String {
    format!(
        "CARGO_TARGET_{}_{setting}",
        triple.to_uppercase().replace('-', "_")
    )
}
