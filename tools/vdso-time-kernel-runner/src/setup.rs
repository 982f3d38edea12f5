//! Prepares a machine: fetches its compiler, linker, emulator and kernel if they are missing.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use fs_err as fs;
use fs_err::os::unix::fs::symlink;
use xshell::{Cmd, Shell};

use crate::machine::{Boot, Machine, Runner};
use crate::runner::{PLAN_VARIABLE, Plan};
use crate::targets::{Arch, Change};
use crate::toolchain::Compiler;
use crate::tools::Gcc;
use crate::{name, tools, workspace};

/// The flag of rustc for a program that is linked statically.
const STATIC: &str = "-Ctarget-feature=+crt-static";

/// The arguments of QEMU for every boot: no devices except a serial console.
const USUAL: &[&str] = &[
    "-nodefaults",
    "-no-user-config",
    "-no-reboot",
    "-display",
    "none",
    "-serial",
    "stdio",
];

pub struct Setup {
    compiler: Compiler,
    target_directory: &'static str,
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
        // The downloads come first. If the mirror lacks something, the command then fails before
        // the compilation of the standard library, which takes minutes.
        let mut gcc = None;
        if arch.name != env::consts::ARCH {
            gcc = Some(tools::gcc(arch)?);
        }
        let mut plan = match &machine.runner {
            Runner::Native => Plan::default(),
            Runner::Emulator => user_plan(arch, gcc.as_ref())?,
            Runner::Kernel(boot) => boot_plan(boot)?,
        };
        let mut setup = Self {
            compiler: Compiler::for_target(arch.triple)?,
            // Static programs need other flags. If static and dynamic programs shared a directory,
            // cargo would compile everything again after each change between them.
            target_directory: if machine.is_static() {
                "on-static"
            } else {
                "on"
            },
            variables: Vec::new(),
            shared_rustflags: shared_rustflags(machine),
            plan: Plan::default(),
        };
        setup.set_profile(machine);
        if let Some(gcc) = gcc {
            setup.set(&variable(arch.triple, "LINKER"), gcc.program);
        }
        if let Runner::Kernel(_) = machine.runner {
            plan.init = Some(setup.guest_init(arch.triple)?);
        }
        setup.set(PLAN_VARIABLE, serde_json::to_string(&plan)?);
        setup.plan = plan;
        if machine.runner != Runner::Native {
            setup.set_runner(arch)?;
        }
        Ok(setup)
    }

    /// Sets what cargo builds, and how.
    fn set_profile(&mut self, machine: &Machine) {
        let is_static = machine.is_static();
        let is_foreign = machine.arch.name != env::consts::ARCH;
        let linkage = if is_static { STATIC } else { "" };
        let rustflags = format!("{} {linkage}", self.shared_rustflags);
        self.set("CARGO_BUILD_TARGET", machine.arch.triple);
        self.set("RUSTFLAGS", rustflags);
        if is_static {
            // The debug info is stripped, because a guest holds all programs in memory, and the
            // standard library's debug info is large.
            self.set("CARGO_PROFILE_DEV_STRIP", "debuginfo");
            self.set("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
        }
        if (is_foreign || is_static) && env::var_os("CARGO_PROFILE_DEV_DEBUG").is_none() {
            // Without debug info the tests compile in three quarters of the time.
            self.set("CARGO_PROFILE_DEV_DEBUG", "false");
        }
        if machine.runner != Runner::Native {
            // Optimize, because emulated code is ten times slower. Debug assertions stay on.
            self.set("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        }
    }

    /// Makes this program cargo's runner. cargo splits the value of its setting `runner` at spaces,
    /// and the path of this program can contain spaces. So the value names the program without its
    /// directory, and the directory is put first in PATH.
    fn set_runner(&mut self, arch: &Arch) -> Result<()> {
        let program = env::current_exe()?;
        let mut directories = Vec::new();
        if let Some(directory) = program.parent() {
            directories.push(directory.to_path_buf());
        }
        let path = env::var_os("PATH").unwrap_or_default();
        directories.extend(env::split_paths(&path));
        self.set("PATH", env::join_paths(directories)?);
        let runner = format!("{} runner", name());
        self.set(&variable(arch.triple, "RUNNER"), runner);
        Ok(())
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    /// Returns a cargo command that builds for the machine and runs programs on it.
    pub(crate) fn cargo<'a>(&self, sh: &'a Shell) -> Cmd<'a> {
        let cargo = self.compiler.cargo(sh, self.target_directory);
        cargo.envs(self.variables.iter().map(|(name, value)| (name, value)))
    }

    /// Returns a cargo command with the user's arguments.
    ///
    /// cargo cannot build a shared library with `+crt-static` (`cargo rustc --crate-type cdylib`:
    /// "does not support these crate types"). Such a library is not run here, so it is linked with
    /// the target's shared libc.
    pub fn cargo_for<'a>(&self, sh: &'a Shell, arguments: &[String]) -> Cmd<'a> {
        let cargo = self.cargo(sh).args(arguments);
        if arguments.iter().any(|argument| argument == "cdylib") {
            return cargo.env("RUSTFLAGS", &self.shared_rustflags);
        }
        cargo
    }

    /// Builds init, a guest's first process, from the sources of this program, and with the
    /// compiler and flags of the guest's programs.
    fn guest_init(&self, triple: &str) -> Result<PathBuf> {
        let sh = Shell::new()?;
        sh.change_dir(env!("CARGO_MANIFEST_DIR"));
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let cargo = self
            .cargo(&sh)
            .args(["build", "--quiet", "--manifest-path", manifest])
            .args(["--no-default-features", "--features", "guest"])
            .args(["--bin", "guest-init"]);
        cargo
            .run()
            .context("cannot build init; if its sources are gone, install this program again")?;
        let target = workspace::target().join(self.target_directory);
        Ok(target.join(triple).join("debug/guest-init"))
    }
}

/// Returns the plan for programs in QEMU's user mode. QEMU looks for the target's shared libraries
/// beside the target's linker, if it is not this machine's.
fn user_plan(arch: &Arch, gcc: Option<&Gcc>) -> Result<Plan> {
    let mut plan = Plan::default();
    plan.qemu
        .push(tools::qemu_user(arch)?.display().to_string());
    if let Some(Gcc { libraries, .. }) = gcc {
        hide_the_hosts_libraries(libraries, arch)?;
        plan.qemu.push("-L".into());
        plan.qemu.push(libraries.display().to_string());
    }
    // QEMU can hang when threads start at the same time, so by default libtest runs one test at a
    // time.
    let threads = env::var("RUST_TEST_THREADS").unwrap_or_else(|_| "1".into());
    plan.set("RUST_TEST_THREADS", &threads);
    plan.set("VDSO_TIME_EMULATED", "user");
    Ok(plan)
}

/// Makes the target's loader use the libraries of this directory only.
///
/// QEMU opens a file of this directory if it is there, and otherwise the file of the host. A host
/// can have libraries for the target, for example in `/lib32`. The loader would find them in the
/// host's `ld.so.cache`, or in the target's multiarch directory. But a libc works only with the
/// loader of its own version: with another one, `pthread_create` never returned.
///
/// Earlier versions of this program made the directory without these files, and a cache may still
/// have it. So they are made here if they are missing, and not where the directory is made.
fn hide_the_hosts_libraries(directory: &Path, arch: &Arch) -> Result<()> {
    let etc = directory.join("etc");
    let cache = etc.join("ld.so.cache");
    if !cache.exists() {
        fs::create_dir_all(etc)?;
        // The loader ignores an empty cache.
        fs::write(cache, "")?;
    }
    let multiarch = arch.gnu().replace("i686", "i386");
    let link = directory.join("lib").join(multiarch);
    match symlink(".", &link) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns the plan for programs in a kernel. It lacks init, which is built later.
fn boot_plan(boot: &Boot) -> Result<Plan> {
    let guest = boot.guest;
    let files = tools::guest(guest, boot.kernel)?;
    let mut machine = words(&guest.machine);
    let mut append = format!("console={} quiet panic=-1", guest.console);
    let mut more = Vec::new();
    let mut clock = None;
    if guest.name == "loong64" {
        // The kernel's wall clock starts in 1970, because the driver of the clock chip is a module,
        // and a guest has no modules. So init sets the clock.
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        clock = Some(now.as_secs() as i64);
    }
    for option in &boot.options {
        match &option.change {
            Change::Kernel(argument) => append.extend([" ", argument]),
            Change::Qemu(arguments) => more.extend(words(arguments)),
            Change::Board { qemu, tree, from } => {
                let tree = tools::guest(guest, from)?.join(tree);
                machine = words(qemu);
                machine.extend(["-dtb".into(), tree.display().to_string()]);
            }
            Change::Clock(seconds) => clock = Some(*seconds),
        }
    }
    let program = tools::qemu_system(guest.qemu)?;
    let mut qemu = vec![program.display().to_string()];
    qemu.extend(words(USUAL));
    qemu.extend(machine);
    qemu.extend(more);
    let kernel = files.join("vmlinuz").display().to_string();
    qemu.extend(["-kernel".into(), kernel]);
    let mut plan = Plan {
        qemu,
        append,
        initrd: guest.initrd,
        page: guest.page,
        busybox: Some(files.join("busybox")),
        clock,
        ..Plan::default()
    };
    plan.set("VDSO_TIME_EMULATED", "kernel");
    Ok(plan)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn shared_rustflags(machine: &Machine) -> String {
    let inherited = env::var("RUSTFLAGS").unwrap_or_default();
    format!("{inherited} {}", machine.arch.rustflags)
}

/// Returns the environment variable for one of cargo's settings of a target.
fn variable(triple: &str, setting: &str) -> String {
    format!(
        "CARGO_TARGET_{}_{setting}",
        triple.to_uppercase().replace('-', "_")
    )
}
