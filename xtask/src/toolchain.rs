//! The compiler of the oldest supported version: Debian's, or one that the user names.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::debian::{Archive, Package, native_architecture};
use crate::process::{pass_through, stdout, step};
use crate::targets::{Library, TARGETS, Target};
use crate::{Error, cache, no_arguments, workspace};

pub(crate) const RUSTC_VARIABLE: &str = "VDSO_TIME_MSRV_RUSTC";

/// The oldest supported version, e.g. "1.85".
const MSRV: &str = env!("CARGO_PKG_RUST_VERSION");

/// The Debian release whose `rustc-web` is of that version.
const SUITE: &str = "bookworm";

pub(crate) struct Compiler {
    rustc: PathBuf,
    rustdoc: PathBuf,
    /// The same compiler with the lints, if it is there.
    clippy: Option<PathBuf>,
    /// The folder of the compiler's shared libraries, if it does not find them by itself.
    libraries: Option<PathBuf>,
    /// The first line of `rustc -vV`, and where the compiler is from.
    pub(crate) version: String,
    /// Our own tree may be added to, another's not.
    pub(crate) ours: bool,
}

/// `cargo xtask toolchain`
pub(crate) fn print_folder(arguments: &[String]) -> Result<ExitCode, Error> {
    no_arguments(arguments)?;
    println!("{}", debian_tree()?.display());
    Ok(ExitCode::SUCCESS)
}

/// `cargo xtask msrv`
pub(crate) fn run_cargo(arguments: &[String]) -> Result<ExitCode, Error> {
    if arguments.is_empty() {
        return Err(Error::Usage("`msrv` needs arguments for cargo".into()));
    }
    let compiler = Compiler::find()?;
    step(&compiler.version);
    Ok(pass_through(compiler.cargo("msrv").args(arguments))?)
}

impl Compiler {
    pub(crate) fn find() -> Result<Self, String> {
        let named = env::var_os(RUSTC_VARIABLE).filter(|path| !path.is_empty());
        let compiler = match named {
            Some(rustc) => Self {
                rustdoc: Path::new(&rustc).with_file_name("rustdoc"),
                clippy: Some(Path::new(&rustc).with_file_name("clippy-driver")).filter(|path| path.is_file()),
                rustc: rustc.into(),
                libraries: None,
                version: String::new(),
                ours: false,
            },
            None => Self::in_tree(&debian_tree()?)?,
        };
        compiler.verified()
    }

    /// The installed compiler, if it has the target's libraries, else the oldest supported one.
    pub(crate) fn for_target(triple: &str) -> Result<Self, String> {
        let libraries = stdout(Command::new("rustc").args(["--print", "target-libdir", "--target", triple]));
        if !libraries.is_ok_and(|folder| Path::new(folder.trim_end()).is_dir()) {
            let compiler = Self::find()?;
            let version = format!("{}; the installed rustc has no libraries for {triple}", compiler.version);
            return Ok(Self { version, ..compiler });
        }
        let version = stdout(Command::new("rustc").arg("-V"))?;
        Ok(Self {
            rustc: "rustc".into(),
            rustdoc: "rustdoc".into(),
            clippy: None,
            libraries: None,
            version: format!("{}, as installed", version.trim_end()),
            ours: false,
        })
    }

    fn in_tree(tree: &Path) -> Result<Self, String> {
        let usr = tree.join("usr");
        Ok(Self {
            rustc: usr.join("bin/rustc"),
            rustdoc: usr.join("bin/rustdoc"),
            clippy: Some(usr.join("bin/clippy-driver")),
            // Debian keeps them in a folder named after the architecture.
            libraries: cache::entries(&usr.join("lib"))?.into_iter().find(|folder| holds_driver(folder)),
            version: String::new(),
            ours: true,
        })
    }

    /// Asks the compiler itself for its version: names of files and packages prove nothing.
    fn verified(mut self) -> Result<Self, String> {
        let text = stdout(self.rustc().arg("-vV"))?;
        let release = text.lines().find_map(|line| line.strip_prefix("release: ")).unwrap_or_default();
        let right =
            release.strip_prefix(MSRV).is_some_and(|patch| patch.is_empty() || patch.starts_with('.'));
        if !right {
            let path = self.rustc.display();
            return Err(format!("{path} is version {release}, but {MSRV} is needed"));
        }
        let origin = if self.ours { "Debian's, in the cache" } else { RUSTC_VARIABLE };
        self.version = format!("{} ({origin})", text.lines().next().unwrap_or_default());
        Ok(self)
    }

    /// The folder in which the compiler looks for libraries and sources.
    pub(crate) fn sysroot(&self) -> Result<PathBuf, String> {
        let path = stdout(self.rustc().args(["--print", "sysroot"]))?;
        Ok(PathBuf::from(path.trim_end()))
    }

    pub(crate) fn rustc(&self) -> Command {
        self.with_libraries(Command::new(&self.rustc))
    }

    /// The installed cargo, with this compiler and a target folder that no other compiler uses.
    pub(crate) fn cargo(&self, target_folder: &str) -> Command {
        let mut command = self.with_libraries(Command::new(workspace::cargo()));
        command
            .env("RUSTC", &self.rustc)
            .env("RUSTDOC", &self.rustdoc)
            // A wrapper may call another compiler. Empty means none, whatever is configured.
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env_remove("RUSTC_BOOTSTRAP")
            .env("CARGO_TARGET_DIR", workspace::target().join(target_folder));
        command
    }

    /// The same cargo, which lints the packages of the workspace as it checks them.
    pub(crate) fn clippy(&self, target_folder: &str) -> Command {
        let mut command = self.cargo(target_folder);
        if let Some(clippy) = &self.clippy {
            command.env("RUSTC_WORKSPACE_WRAPPER", clippy);
        }
        command
    }

    fn with_libraries(&self, mut command: Command) -> Command {
        if let Some(folder) = &self.libraries {
            let mut path = OsString::from(folder);
            if let Some(inherited) = env::var_os("LD_LIBRARY_PATH") {
                path.push(":");
                path.push(inherited);
            }
            command.env("LD_LIBRARY_PATH", path);
        }
        command
    }
}

fn holds_driver(folder: &Path) -> bool {
    let is_driver = |file: &PathBuf| file.to_string_lossy().contains("/librustc_driver-");
    cache::entries(folder).is_ok_and(|files| files.iter().any(is_driver))
}

/// The folder of Debian's compiler, fetched the first time.
fn debian_tree() -> Result<PathBuf, String> {
    // Named after what is in it: with another table of targets, another tree is needed.
    let architectures = packaged_architectures().join("-");
    let name = format!("rust-{MSRV}-clippy-{SUITE}-{architectures}");
    let tree = cache::folder()?.join(name);
    cache::build_once(&tree, |draft| {
        build_tree(draft).map_err(|error| {
            format!("{error}\nOr name an installed {MSRV} compiler with {RUSTC_VARIABLE}=...")
        })
    })?;
    Ok(tree)
}

fn packaged_architectures() -> Vec<&'static str> {
    let architecture = |target: &Target| match target.library {
        Library::Debian(architecture) => Some(architecture),
        Library::Core => None,
    };
    TARGETS.iter().filter_map(architecture).collect()
}

fn build_tree(draft: &Path) -> Result<(), String> {
    let native = native_architecture()?;
    let packages = packages(&native);
    let apt = draft.join("apt");
    Archive::open(&apt, &native, &packages)?.unpack(&packages, draft)?;
    move_sources(draft)?;
    cache::remove(&apt)?;
    cache::remove(&draft.join("usr/share"))?;
    Compiler::in_tree(draft)?.verified()?;
    step("the compiler is ready");
    Ok(())
}

fn packages(native: &str) -> Vec<Package> {
    let package = |name: &str, architecture: &str| Package {
        name: name.into(),
        architecture: architecture.into(),
        suite: SUITE,
    };
    let mut packages = vec![
        package("rustc-web", native),
        package(&format!("libstd-rust-web-{MSRV}"), native),
        package("rust-web-clippy", native),
        package("libllvm19", native),
        package("rust-web-src", native),
    ];
    let mut architectures: Vec<&str> = packaged_architectures();
    architectures.push(native);
    for architecture in architectures {
        let library = package("libstd-rust-web-dev", architecture);
        if !packages.contains(&library) {
            packages.push(library);
        }
    }
    packages
}

/// Puts the sources of the standard library where a compiler looks for them, and drops the rest
/// (the compiler's own, nine tenths of the package). Debian has an absolute link in that place.
fn move_sources(tree: &Path) -> Result<(), String> {
    let sources = tree.join("usr/src");
    let library = cache::entries(&sources)?
        .into_iter()
        .map(|folder| folder.join("library"))
        .find(|library| library.is_dir())
        .ok_or("rust-web-src holds no sources of the standard library")?;
    let place = tree.join("usr/lib/rustlib/src/rust");
    if place.is_symlink() {
        fs::remove_file(&place).map_err(|error| cache::at(&place, &error))?;
    }
    cache::create(&place)?;
    fs::rename(&library, place.join("library")).map_err(|error| cache::at(&library, &error))?;
    cache::remove(&sources)
}
