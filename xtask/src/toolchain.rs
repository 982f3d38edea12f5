//! The compilers: the installed one, and that of the oldest supported version, which is Debian's or
//! one that the user names.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use fs_err as fs;
use xshell::{Cmd, Shell, cmd};

use crate::debian::{Archive, Package, native_architecture};
use crate::targets::ARCHES;
use crate::{cache, step, workspace};

pub(crate) const RUSTC_VARIABLE: &str = "VDSO_TIME_MSRV_RUSTC";

/// The oldest supported version, e.g. "1.85".
const MSRV: &str = env!("CARGO_PKG_RUST_VERSION");

/// The Debian release whose `rustc-web` has that version.
const SUITE: &str = "bookworm";

pub(crate) struct Compiler {
    rustc: PathBuf,
    /// The folder of the compiler's shared libraries, if it does not find them itself.
    libraries: Option<PathBuf>,
    /// The first line of `rustc -vV`, and where the compiler is from.
    pub(crate) version: String,
    /// Whether the compiler is in the cache, where libraries can be added to it.
    pub(crate) is_cached: bool,
}

impl Compiler {
    /// The compiler of the oldest supported version.
    pub(crate) fn oldest() -> Result<Self> {
        let named = env::var_os(RUSTC_VARIABLE).filter(|path| !path.is_empty());
        let compiler = match named {
            Some(rustc) => {
                Self { rustc: rustc.into(), libraries: None, version: String::new(), is_cached: false }
            }
            None => Self::in_tree(&debian_tree()?)?,
        };
        compiler.verified()
    }

    /// The installed compiler if it has the target's libraries, else the oldest supported one.
    pub(crate) fn for_target(triple: &str) -> Result<Self> {
        let sh = Shell::new()?;
        let folder = cmd!(sh, "rustc --print target-libdir --target {triple}").quiet().ignore_stderr().read();
        if !folder.is_ok_and(|folder| Path::new(&folder).is_dir()) {
            let mut compiler = Self::oldest()?;
            compiler.version.extend(["; the installed rustc has no libraries for ", triple]);
            return Ok(compiler);
        }
        let version = format!("{}, as installed", cmd!(sh, "rustc -V").quiet().read()?);
        Ok(Self { rustc: "rustc".into(), libraries: None, version, is_cached: false })
    }

    fn in_tree(tree: &Path) -> Result<Self> {
        let usr = tree.join("usr");
        // Debian's folder is named after the architecture.
        let libraries = cache::entries(&usr.join("lib"))?.into_iter().find(|folder| has_driver(folder));
        Ok(Self { rustc: usr.join("bin/rustc"), libraries, version: String::new(), is_cached: true })
    }

    /// Asks the compiler for its version, because names of files and packages prove nothing.
    fn verified(mut self) -> Result<Self> {
        let sh = Shell::new()?;
        let text = self.rustc(&sh).arg("-vV").read()?;
        let release = text.lines().find_map(|line| line.strip_prefix("release: ")).unwrap_or_default();
        let patch = release.strip_prefix(MSRV);
        if !patch.is_some_and(|patch| patch.is_empty() || patch.starts_with('.')) {
            bail!("{} is version {release}, but {MSRV} is needed", self.rustc.display());
        }
        let origin = if self.is_cached { "Debian's, in the cache" } else { RUSTC_VARIABLE };
        self.version = format!("{} ({origin})", text.lines().next().unwrap_or_default());
        Ok(self)
    }

    /// The folder with the compiler's libraries and sources of `core`.
    pub(crate) fn rustlib(&self) -> Result<PathBuf> {
        let sh = Shell::new()?;
        let sysroot = self.rustc(&sh).args(["--print", "sysroot"]).read()?;
        Ok(Path::new(&sysroot).join("lib/rustlib"))
    }

    pub(crate) fn rustc<'a>(&self, sh: &'a Shell) -> Cmd<'a> {
        let rustc = &self.rustc;
        self.with_libraries(cmd!(sh, "{rustc}"))
    }

    /// The installed cargo, with this compiler and a target folder that no other compiler uses.
    pub(crate) fn cargo<'a>(&self, sh: &'a Shell, target_folder: &str) -> Cmd<'a> {
        self.with_libraries(workspace::cargo(sh))
            .env("RUSTC", &self.rustc)
            .env("RUSTDOC", self.rustc.with_file_name("rustdoc"))
            // A wrapper could call another compiler. Empty means none, whatever is configured.
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env_remove("RUSTC_BOOTSTRAP")
            .env("CARGO_TARGET_DIR", workspace::target().join(target_folder))
    }

    /// The same cargo, which also lints the packages of the workspace if the compiler has clippy.
    pub(crate) fn clippy<'a>(&self, sh: &'a Shell, target_folder: &str) -> Cmd<'a> {
        let clippy = self.rustc.with_file_name("clippy-driver");
        let cargo = self.cargo(sh, target_folder);
        if clippy.is_file() { cargo.env("RUSTC_WORKSPACE_WRAPPER", clippy) } else { cargo }
    }

    fn with_libraries<'a>(&self, command: Cmd<'a>) -> Cmd<'a> {
        let Some(folder) = &self.libraries else { return command.quiet() };
        let mut path = OsString::from(folder);
        if let Some(inherited) = env::var_os("LD_LIBRARY_PATH") {
            path.push(":");
            path.push(inherited);
        }
        command.env("LD_LIBRARY_PATH", path).quiet()
    }
}

fn has_driver(folder: &Path) -> bool {
    let is_driver = |file: &PathBuf| file.to_string_lossy().contains("/librustc_driver-");
    cache::entries(folder).is_ok_and(|files| files.iter().any(is_driver))
}

/// Debian's compiler, fetched the first time.
pub(crate) fn debian_tree() -> Result<PathBuf> {
    let mut architectures: Vec<&str> = ARCHES.iter().map(|arch| arch.debian).collect();
    architectures.sort_unstable();
    architectures.dedup();
    let tree = cache::folder()?.join(format!("rust-{MSRV}-clippy-{SUITE}-{}", architectures.join("-")));
    cache::build_once(&tree, |draft| {
        build_tree(draft, &architectures)
            .with_context(|| format!("cannot fetch Rust {MSRV}; {RUSTC_VARIABLE} can name an installed one"))
    })?;
    Ok(tree)
}

fn build_tree(draft: &Path, architectures: &[&str]) -> Result<()> {
    let native = native_architecture(&Shell::new()?)?;
    let package = |name: &str, architecture: &str| Package {
        name: name.into(),
        architecture: architecture.into(),
        suite: SUITE,
    };
    let library = format!("libstd-rust-web-{MSRV}");
    let names = ["rustc-web", &library, "rust-web-clippy", "libllvm19", "rust-web-src"];
    let mut packages = names.map(|name| package(name, &native)).to_vec();
    let host = Some(&*native).filter(|host| !architectures.contains(host));
    let architectures = architectures.iter().copied().chain(host);
    packages.extend(architectures.map(|architecture| package("libstd-rust-web-dev", architecture)));
    let apt = draft.join("apt");
    Archive::open(&apt, &packages)?.unpack(&packages, false, draft)?;
    move_sources(draft)?;
    fs::remove_dir_all(apt)?;
    fs::remove_dir_all(draft.join("usr/share"))?;
    Compiler::in_tree(draft)?.verified()?;
    step("the compiler is ready");
    Ok(())
}

/// Moves the sources of the standard library to where a compiler looks for them, and deletes the
/// compiler's own, nine tenths of the package. Debian has an absolute link in that path.
fn move_sources(tree: &Path) -> Result<()> {
    let sources = tree.join("usr/src");
    let mut libraries = cache::entries(&sources)?.into_iter().map(|folder| folder.join("library"));
    let library = libraries.find(|library| library.is_dir());
    let library = library.context("rust-web-src has no sources of the standard library")?;
    let to = tree.join("usr/lib/rustlib/src/rust");
    if to.is_symlink() {
        fs::remove_file(&to)?;
    }
    fs::create_dir_all(&to)?;
    fs::rename(library, to.join("library"))?;
    Ok(fs::remove_dir_all(sources)?)
}
