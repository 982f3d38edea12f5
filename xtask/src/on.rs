//! `cargo xtask on`: cargo, with a target's compiler, linker and runner, which are fetched where they are missing.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::place::{Place, Runner};
use crate::process::{pass_through, stdout};
use crate::toolchain::Compiler;
use crate::{Error, cache, kernels, tools, workspace};

/// The kernel runner reads it.
pub(crate) const TIMEOUT_VARIABLE: &str = "VDSO_TIME_GUEST_TIMEOUT";

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let [place, cargo @ ..] = arguments else {
        return Err(Error::Usage("`on` needs a place, and arguments for cargo".into()));
    };
    let place = Place::parse(place).map_err(Error::Usage)?;
    if cargo.is_empty() {
        return Err(Error::Usage(format!("`on {place}` needs arguments for cargo, such as `test`")));
    }
    let setup = Setup::of(&place)?;
    Ok(pass_through(setup.cargo().args(cargo))?)
}

/// A place made ready: what cargo has to be told.
pub(crate) struct Setup {
    compiler: Compiler,
    target_folder: &'static str,
    variables: Vec<(String, String)>,
    /// The command that runs a program there.
    pub(crate) runner: Vec<String>,
}

impl Setup {
    pub(crate) fn of(place: &Place) -> Result<Self, String> {
        let arch = place.arch;
        let foreign = arch.name != env::consts::ARCH;
        let mut setup = Self {
            compiler: Compiler::for_target(arch.triple)?,
            // Their programs differ, and cargo would make them anew at each change.
            target_folder: if place.is_static() { "on-static" } else { "on" },
            variables: vec![("CARGO_BUILD_TARGET".into(), arch.triple.into())],
            runner: Vec::new(),
        };
        let mut rustflags = env::var("RUSTFLAGS").unwrap_or_default();
        let mut flag = |flag: &str| {
            rustflags.push(' ');
            rustflags.push_str(flag);
        };
        flag(arch.rustflags);
        if let Runner::Kernel(boot) = &place.runner {
            flag(boot.guest.rustflags);
        }
        if place.is_static() {
            flag("-Ctarget-feature=+crt-static");
            for profile in ["DEV", "RELEASE"] {
                // Ten times smaller: a guest has all its programs in memory.
                setup.variables.push((format!("CARGO_PROFILE_{profile}_STRIP"), "debuginfo".into()));
            }
        }
        setup.variables.push(("RUSTFLAGS".into(), rustflags));
        if place.runner != Runner::Native {
            // Emulated, everything is ten times slower. What a debug build checks, this one does.
            setup.variables.push(("CARGO_PROFILE_DEV_OPT_LEVEL".into(), "1".into()));
        }
        let gcc = if foreign { Some(tools::gcc(arch)?) } else { None };
        if let Some(gcc) = &gcc {
            setup.variables.push((variable(arch.triple, "LINKER"), gcc.program.display().to_string()));
        }
        match &place.runner {
            Runner::Native => {}
            Runner::Emulator(emulator) => {
                setup.runner.push(tools::qemu_user(emulator, arch)?.display().to_string());
                if let Some(gcc) = gcc {
                    setup.runner.extend(["-L".into(), gcc.libraries.display().to_string()]);
                }
            }
            Runner::Kernel(boot) => {
                let plan = kernels::plan(boot, &setup.guest_init()?)?;
                let folder = workspace::root().join("target/boots");
                cache::create(&folder)?;
                let file = folder.join(place.to_string());
                cache::write(&file, &plan)?;
                setup.runner = [kernel_runner()?, file].map(|path| path.display().to_string()).into();
            }
        }
        if !setup.runner.is_empty() {
            setup.variables.push((variable(arch.triple, "RUNNER"), setup.runner.join(" ")));
        }
        Ok(setup)
    }

    pub(crate) fn cargo(&self) -> Command {
        let mut command = self.compiler.cargo(self.target_folder);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The first process of a guest, built like its programs.
    fn guest_init(&self) -> Result<PathBuf, String> {
        build(&mut self.cargo(), "guest-init")?;
        let folder = workspace::root().join("target").join(self.target_folder);
        let triple = self.variables.first().map_or("", |(_, triple)| triple);
        Ok(folder.join(triple).join("debug/guest-init"))
    }
}

/// The runner lies beside us: it is a program of the same package.
fn kernel_runner() -> Result<PathBuf, String> {
    build(&mut Command::new(workspace::cargo()), "kernel-runner")?;
    let own = env::current_exe().map_err(|error| format!("where this program lies: {error}"))?;
    Ok(own.with_file_name("kernel-runner"))
}

fn build(cargo: &mut Command, program: &str) -> Result<(), String> {
    let manifest = workspace::root().join("Cargo.toml");
    stdout(
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
