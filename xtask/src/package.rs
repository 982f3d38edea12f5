//! `cargo xtask package`: the packages as they would be published, each compiled alone by the
//! oldest supported Rust, with the lowest version of each dependency that it allows.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use fs_err as fs;
use serde_json::Value;
use vdso_time_kernel_runner::toolchain::Compiler;
use xshell::{Shell, cmd};

use crate::{links, workspace};

pub(crate) fn run() -> Result<ExitCode> {
    unpack()?;
    let compiler = Compiler::oldest()?;
    for name in names()? {
        let sh = Shell::new()?;
        sh.change_dir(folder().join(&name));
        sh.remove_path("Cargo.lock")?;
        let cargo = || compiler.cargo(&sh, "package-lowest");
        // The option is unstable.
        let lock = cargo().env("RUSTC_BOOTSTRAP", "1").arg("-Zdirect-minimal-versions");
        lock.args(["generate-lockfile", "--quiet"]).run().with_context(|| name.clone())?;
        cargo()
            .args(["check", "--quiet", "--locked", "--all-features"])
            .run()
            .with_context(|| name.clone())?;
        println!("{name} compiles with its lowest dependencies and the oldest Rust");
    }
    for name in names()? {
        println!("{name}: {} links in README.md", links::check(&folder(), &name)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// The packages that are published.
pub(crate) fn published() -> Result<Vec<Value>> {
    let mut packages = workspace::packages(&workspace::shell()?, &["--no-deps"])?;
    packages.retain(|package| package["publish"].is_null());
    Ok(packages)
}

pub(crate) fn names() -> Result<Vec<String>> {
    Ok(published()?.iter().filter_map(|package| package["name"].as_str().map(Into::into)).collect())
}

/// The folder in which each package has a folder of its name.
pub(crate) fn folder() -> PathBuf {
    workspace::target().join("unpacked")
}

/// Packs, compiles and unpacks all packages as `cargo publish` does.
fn unpack() -> Result<()> {
    let sh = workspace::shell()?;
    let (registry, publish) =
        (workspace::cargo_home()?.join("registry"), workspace::target().join("publish"));
    // cargo takes a version of a package for unchanged: its sources, and what is compiled of it.
    let kept = [
        (registry.join("cache"), "-"),
        (registry.join("src"), "-"),
        (publish.join("debug/.fingerprint"), "vdso-"),
    ];
    for (folder, prefix) in kept {
        let paths = sh.read_dir(folder).unwrap_or_default().into_iter();
        let is_ours = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
        };
        paths.filter(is_ours).try_for_each(|path| sh.remove_path(path))?;
    }
    let cargo =
        workspace::cargo(&sh).args(["publish", "--dry-run", "--quiet", "--workspace", "--allow-dirty"]);
    cargo.env("CARGO_TARGET_DIR", &publish).run()?;
    let (from, to) = (publish.join("package"), folder());
    sh.remove_path(&to)?;
    sh.create_dir(to.join(".cargo"))?;
    let mut config = String::from("[patch.crates-io]\n");
    for name in names()? {
        let (from, to) = (from.join(format!("{name}-{}", workspace::VERSION)), to.join(&name));
        cmd!(sh, "cp --recursive {from} {to}").quiet().run()?;
        // cargo must not look for a workspace in the folders above.
        let manifest = to.join("Cargo.toml");
        fs::write(&manifest, fs::read_to_string(&manifest)? + "\n[workspace]\n")?;
        writeln!(config, "{name}.path = '{}'", to.display())?;
    }
    Ok(fs::write(to.join(".cargo/config.toml"), config)?)
}
