//! A place made ready: its compiler, linker and emulator, fetched where they are missing.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::place::{Place, Runner};
use crate::process::{stdout_with_messages, step};
use crate::toolchain::Compiler;
use crate::{cache, kernels, tools, workspace};

/// The place runner reads it.
pub(crate) const TIMEOUT_VARIABLE: &str = "VDSO_TIME_GUEST_TIMEOUT";

/// Names the place to the place runner.
const PLAN_VARIABLE: &str = "VDSO_TIME_PLAN";

const RUNNER: &str = "place-runner";

pub(crate) struct Setup {
    compiler: Compiler,
    target_folder: &'static str,
    /// What cargo has to be told.
    variables: Vec<(String, OsString)>,
    /// The program of this package that runs programs at the place, and what it reads.
    runner: PathBuf,
    plan: PathBuf,
    /// The words of `VDSO_TIME_TEST_REQUIRES`: what no test may miss there, whatever this machine has.
    requires: String,
}

impl Setup {
    pub(crate) fn of(place: &Place) -> Result<Self, String> {
        let arch = place.arch;
        let foreign = arch.name != env::consts::ARCH;
        let compiler = Compiler::for_target(arch.triple)?;
        tell_once(&compiler.version);
        let mut setup = Self {
            compiler,
            // Their programs differ, and cargo would make them anew at each change.
            target_folder: if place.is_static() { "on-static" } else { "on" },
            variables: Vec::new(),
            runner: PathBuf::new(),
            plan: workspace::target().join("places").join(place.to_string()),
            requires: required(place),
        };
        setup.set("CARGO_BUILD_TARGET", arch.triple);
        setup.set("RUSTFLAGS", rustflags(place));
        if place.is_static() {
            // A guest has all its programs in memory: the standard library's is large.
            setup.set("CARGO_PROFILE_DEV_STRIP", "debuginfo");
            setup.set("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
        }
        if (foreign || place.is_static()) && env::var_os("CARGO_PROFILE_DEV_DEBUG").is_none() {
            // It takes a quarter of the time that the tests take to compile.
            setup.set("CARGO_PROFILE_DEV_DEBUG", "false");
        }
        if place.runner != Runner::Native {
            // Emulated, everything is ten times slower. What a debug build checks, this one does.
            setup.set("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        }
        let gcc = if foreign { Some(tools::gcc(arch)?) } else { None };
        if let Some(gcc) = &gcc {
            setup.set(&variable(arch.triple, "LINKER"), &gcc.program);
        }
        let plan = match &place.runner {
            Runner::Native => String::new(),
            Runner::Emulator(emulator) => {
                let qemu = tools::qemu_user(emulator, arch)?;
                let libraries = gcc.map(|gcc| format!("qemu -L\nqemu {}\n", gcc.libraries.display()));
                format!("qemu {}\n{}", qemu.display(), libraries.unwrap_or_default())
            }
            Runner::Kernel(boot) => kernels::plan(boot, &setup.guest_init(arch.triple)?)?,
        };
        if let Some(folder) = setup.plan.parent() {
            cache::create(folder)?;
        }
        cache::write(&setup.plan, &plan)?;
        setup.runner = place_runner()?;
        if place.runner != Runner::Native {
            setup.set_runner(arch.triple)?;
        }
        Ok(setup)
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    /// cargo splits a runner at spaces, which a path may have: so it gets a name alone.
    fn set_runner(&mut self, triple: &str) -> Result<(), String> {
        let folders = env::var_os("PATH").unwrap_or_default();
        let own = self.runner.parent().map(Path::to_path_buf);
        let path = env::join_paths(own.into_iter().chain(env::split_paths(&folders)));
        self.set("PATH", path.map_err(|error| format!("{}: {error}", self.runner.display()))?);
        self.set(&variable(triple, "RUNNER"), RUNNER);
        self.set(PLAN_VARIABLE, self.plan.clone());
        self.set("VDSO_TIME_TEST_REQUIRES", self.requires.clone());
        Ok(())
    }

    /// cargo, which builds for the place and runs there.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = self.compiler.cargo(self.target_folder);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The place runner.
    pub(crate) fn runner(&self) -> Command {
        let mut command = Command::new(&self.runner);
        command.env(PLAN_VARIABLE, &self.plan).env("VDSO_TIME_TEST_REQUIRES", &self.requires);
        command
    }

    /// The first process of a guest, built like its programs.
    fn guest_init(&self, triple: &str) -> Result<PathBuf, String> {
        build(&mut self.cargo(), "guest-init")?;
        Ok(workspace::target().join(self.target_folder).join(triple).join("debug/guest-init"))
    }
}

/// Says it on stderr, unless it has been said.
fn tell_once(message: &str) {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let Ok(mut told) = TOLD.lock() else { return };
    if !told.iter().any(|one| one == message) {
        step(message);
        told.push(message.into());
    }
}

fn required(place: &Place) -> String {
    let Runner::Kernel(boot) = &place.runner else { return String::new() };
    let year = boot.variants.iter().map(|variant| variant.name).filter(|name| *name == "2040");
    [boot.guest.has].into_iter().chain(year).collect::<Vec<_>>().join(" ")
}

fn rustflags(place: &Place) -> String {
    let named = env::var("RUSTFLAGS").unwrap_or_default();
    let kernel = match &place.runner {
        Runner::Kernel(boot) => boot.guest.rustflags,
        _ => "",
    };
    let linkage = if place.is_static() { "-Ctarget-feature=+crt-static" } else { "" };
    [&named, place.arch.rustflags, kernel, linkage].join(" ")
}

/// The runner lies beside us: it is a program of the same package.
fn place_runner() -> Result<PathBuf, String> {
    build(&mut Command::new(workspace::cargo()), RUNNER)?;
    let own = env::current_exe().map_err(|error| format!("where this program lies: {error}"))?;
    Ok(own.with_file_name(RUNNER))
}

fn build(cargo: &mut Command, program: &str) -> Result<(), String> {
    let manifest = workspace::root().join("Cargo.toml");
    stdout_with_messages(
        cargo
            .args(["build", "--quiet", "--package", "xtask", "--bin", program, "--manifest-path"])
            .arg(manifest),
    )
    .map(drop)
}

/// cargo's name of a setting of the target, as a variable.
fn variable(triple: &str, setting: &str) -> String {
    format!("CARGO_TARGET_{}_{setting}", triple.to_uppercase().replace('-', "_"))
}
