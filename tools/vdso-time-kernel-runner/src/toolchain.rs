//! The compilers: the installed one, and Debian's, which has the oldest supported version.

use std::env::{self, consts::ARCH};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use fs_err as fs;
use xshell::{Cmd, Shell, cmd};

use crate::debian::{self, Package, native_architecture};
use crate::targets::TARGETS;
use crate::{cache, step, workspace};

/// The oldest supported version, e.g. "1.85".
const MSRV: &str = env!("CARGO_PKG_RUST_VERSION");

/// The Debian release whose `rustc-web` has that version.
const SUITE: &str = "bookworm";

/// The manifest of an empty package. cargo compiles the standard library only as a dependency of a
/// package.
const STD_MANIFEST: &str = "[package]\nname = \"empty\"\nedition = \"2021\"\n[workspace]\n";

pub struct Compiler {
    /// The directory of Debian's compiler in the cache, or `None` for the installed compiler.
    tree: Option<PathBuf>,
}

impl Compiler {
    /// Returns the compiler of the oldest supported version. Fetches it if it is not in the cache.
    pub fn oldest() -> Result<Self> {
        let packaged = TARGETS.arches.iter().filter(|arch| arch.is_packaged());
        let mut architectures: Vec<&str> = packaged.map(|arch| arch.debian).collect();
        architectures.sort_unstable();
        architectures.dedup();
        let name = format!("rust-{MSRV}-clippy-{SUITE}-{}", architectures.join("-"));
        let tree = cache::directory()?.join(name);
        cache::build_once(&tree, |draft| {
            build_tree(draft, &architectures).with_context(|| format!("cannot fetch Rust {MSRV}"))
        })?;
        Ok(Self { tree: Some(tree) })
    }

    /// Returns the installed compiler if it has the target's libraries, and otherwise the oldest
    /// supported one.
    pub(crate) fn for_target(triple: &str) -> Result<Self> {
        if is_installed(triple)? {
            return Ok(Self { tree: None });
        }
        step(&format!(
            "the installed rustc has no libraries for {triple}; using Debian's Rust {MSRV}, which \
             cannot run doctests for other architectures: add `--tests`"
        ));
        let compiler = Self::oldest()?;
        compiler.add_std(triple)?;
        Ok(compiler)
    }

    /// Compiles the standard library for a target, unless Debian has it.
    pub fn add_std(&self, triple: &str) -> Result<()> {
        let sh = Shell::new()?;
        let rustc = self.with_libraries(sh.cmd(self.program("rustc")));
        let sysroot = rustc.args(["--print", "sysroot"]).read()?;
        self.build_std(Path::new(&sysroot), triple, "std,panic_unwind,test", false)
    }

    /// Makes a sysroot with these crates of the standard library, compiled only as far as `cargo
    /// check` needs them.
    pub fn sysroot_to_check(&self, triples: &[String], crates: &str) -> Result<PathBuf> {
        let tree = self
            .tree
            .as_deref()
            .context("the installed compiler's directory is not ours")?;
        let sysroot = tree.join(format!("check-{crates}"));
        triples
            .iter()
            .try_for_each(|triple| self.build_std(&sysroot, triple, crates, true))?;
        Ok(sysroot)
    }

    fn build_std(
        &self,
        sysroot: &Path,
        triple: &str,
        crates: &str,
        is_checked: bool,
    ) -> Result<()> {
        let command: &[_] = if is_checked {
            &["check"]
        } else {
            &["build", "--release"]
        };
        cache::build_once(&sysroot.join("lib/rustlib").join(triple), |draft| {
            step(&format!("compiling the standard library for {triple}"));
            let package = draft.join("package");
            fs::create_dir_all(package.join("src"))?;
            fs::write(package.join("src/lib.rs"), "#![no_std]")?;
            fs::write(package.join("Cargo.toml"), STD_MANIFEST)?;
            let sh = Shell::new()?;
            sh.change_dir(&package);
            let mut cargo = self
                .cargo(&sh, "")
                .env("RUSTC_BOOTSTRAP", "1")
                .args(command)
                .args(["--quiet", "--target", triple, "--target-dir", "target"])
                .arg(format!("-Zbuild-std={crates}"));
            let profile = if is_checked {
                // Code that is only checked prints no backtrace.
                cargo = cargo.arg("-Zbuild-std-features=").env("RUSTFLAGS", "");
                "debug"
            } else {
                // Without the library's bitcode no program could be built with `lto`.
                cargo = cargo.env("RUSTFLAGS", "-Cembed-bitcode=yes");
                "release"
            };
            cargo.run()?;
            let built = package.join("target").join(triple).join(profile);
            fs::rename(built.join("deps"), draft.join("lib"))?;
            Ok(fs::remove_dir_all(package)?)
        })
    }

    /// Returns the path of a program of the compiler.
    fn program(&self, name: &str) -> PathBuf {
        match &self.tree {
            Some(tree) => tree.join("usr/bin").join(name),
            None => name.into(),
        }
    }

    /// Returns the installed cargo, with this compiler and a target directory that no other
    /// compiler uses.
    pub(crate) fn cargo<'a>(&self, sh: &'a Shell, target_directory: &str) -> Cmd<'a> {
        self.with_libraries(workspace::cargo(sh))
            .env("RUSTC", self.program("rustc"))
            .env("RUSTDOC", self.program("rustdoc"))
            // cargo must not start rustc through a wrapper, because the wrapper could call another
            // compiler. An empty value turns off even a wrapper that cargo's configuration names.
            .env("RUSTC_WRAPPER", "")
            .env("RUSTC_WORKSPACE_WRAPPER", "")
            .env_remove("RUSTC_BOOTSTRAP")
            .env(
                "CARGO_TARGET_DIR",
                workspace::target().join(target_directory),
            )
    }

    /// Returns the variables with which cargo uses this compiler, and a variable with the path of
    /// its Clippy.
    pub fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let mut variables = vec![
            ("RUSTC", self.program("rustc")),
            ("RUSTDOC", self.program("rustdoc")),
            ("CLIPPY_DRIVER", self.program("clippy-driver")),
        ];
        if let Some(path) = self.library_path() {
            variables.push(("LD_LIBRARY_PATH", path.into()));
        }
        variables
    }

    fn with_libraries<'a>(&self, command: Cmd<'a>) -> Cmd<'a> {
        match self.library_path() {
            Some(path) => command.env("LD_LIBRARY_PATH", path).quiet(),
            None => command.quiet(),
        }
    }

    /// Returns the value of `LD_LIBRARY_PATH` with which Debian's compiler finds its shared
    /// libraries. It does not find them by itself. Returns `None` for the installed compiler.
    fn library_path(&self) -> Option<OsString> {
        let tree = self.tree.as_ref()?;
        let mut path = OsString::from(tree.join(format!("usr/lib/{ARCH}-linux-gnu")));
        if let Some(inherited) = env::var_os("LD_LIBRARY_PATH") {
            path.push(":");
            path.push(inherited);
        }
        Some(path)
    }
}

/// Returns whether the installed compiler has the target's standard library.
fn is_installed(triple: &str) -> Result<bool> {
    let sh = Shell::new()?;
    let print = cmd!(sh, "rustc --print target-libdir --target {triple}");
    match print.quiet().ignore_stderr().read() {
        Ok(libraries) => Ok(Path::new(&libraries).is_dir()),
        Err(_) => Ok(false),
    }
}

fn build_tree(draft: &Path, architectures: &[&str]) -> Result<()> {
    let native = native_architecture(&Shell::new()?)?;
    // The name of the package with libstd contains the version of Rust. So if the suite has another
    // version, apt does not find this package, and the command fails.
    let library = format!("libstd-rust-web-{MSRV}");
    let mut packages = Vec::new();
    for name in [
        "rustc-web",
        &library,
        "rust-web-clippy",
        "libllvm19",
        "rust-web-src",
    ] {
        packages.push(Package::new(name, &native, SUITE));
    }
    let mut architectures = architectures.to_vec();
    if !architectures.contains(&&*native) {
        architectures.push(&native);
    }
    for architecture in architectures {
        packages.push(Package::new("libstd-rust-web-dev", architecture, SUITE));
    }
    debian::unpack(&packages, false, draft)?;
    move_sources(draft)?;
    Ok(fs::remove_dir_all(draft.join("usr/share"))?)
}

/// Moves the sources of the standard library to the directory where the compiler looks for them.
/// In rust-web-src, the path of this directory is an absolute symbolic link, which would lead out
/// of the tree, so the link is removed first. Also deletes all other sources of the package: those
/// of the compiler, which are nine tenths of the package.
fn move_sources(tree: &Path) -> Result<()> {
    let sources = tree.join("usr/src");
    let directories = cache::entries(&sources)?;
    let libraries = directories.iter().map(|path| path.join("library"));
    let library = libraries.into_iter().find(|library| library.is_dir());
    let library = library.context("rust-web-src has no sources of the standard library")?;
    let to = tree.join("usr/lib/rustlib/src/rust");
    if to.is_symlink() {
        fs::remove_file(&to)?;
    }
    fs::create_dir_all(&to)?;
    fs::rename(library, to.join("library"))?;
    Ok(fs::remove_dir_all(sources)?)
}
