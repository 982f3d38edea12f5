//! `cargo xtask package`: the packages as they would be published, each compiled alone: by the
//! oldest supported Rust with the lowest version of each dependency that it allows, and by the
//! installed Rust with the newest.

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
        sh.remove_path("Cargo.lock")?;
        for features in [None, Some("--no-default-features")] {
            let cargo =
                workspace::cargo(&sh).env("CARGO_TARGET_DIR", workspace::target().join("package-newest"));
            // Otherwise cargo keeps to versions that the package's `rust-version` accepts.
            let cargo = cargo.env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "allow");
            cargo.args(["check", "--quiet"]).args(features).run().with_context(|| name.clone())?;
        }
        println!("{name} compiles with its newest dependencies and the installed Rust");
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

/// Packs all packages as `cargo publish` does, and unpacks them. What compiles them is above.
fn unpack() -> Result<()> {
    let (sh, publish, to) = (workspace::shell()?, workspace::target().join("publish"), folder());
    let packages = names()?.into_iter().map(|name| format!("--package={name}"));
    let cargo = workspace::cargo(&sh).args(["package", "--no-verify", "--quiet", "--allow-dirty"]);
    cargo.args(packages).env("CARGO_TARGET_DIR", &publish).run()?;
    sh.remove_path(&to)?;
    let mut config = String::from("[patch.crates-io]\n");
    for name in names()? {
        let archive = publish.join(format!("package/{name}-{}.crate", workspace::VERSION));
        let to = to.join(&name);
        sh.create_dir(&to)?;
        cmd!(sh, "tar --extract --file {archive} --directory {to} --strip-components=1").quiet().run()?;
        // cargo must not look for a workspace in the folders above.
        let manifest = to.join("Cargo.toml");
        fs::write(&manifest, fs::read_to_string(&manifest)? + "\n[workspace]\n")?;
        writeln!(config, "{name}.path = '{}'", to.display())?;
    }
    Ok(sh.write_file(to.join(".cargo/config.toml"), config)?)
}
