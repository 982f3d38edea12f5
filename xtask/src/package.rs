//! `cargo xtask package`: the packages as they would be published, each compiled alone: by the
//! oldest supported Rust with the lowest version of each dependency that it allows, and by the
//! installed Rust with the newest. Then their documentation as docs.rs builds it: for this machine,
//! and with `--docs` for every target.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::rust::Rust;
use crate::{tools, workspace};

/// What docs.rs builds for, unless a package says otherwise.
const HOST: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(is_documented_for_all: bool) -> Result<ExitCode> {
    let packages = published()?;
    let name = |package: &Value| package["name"].as_str().map(String::from);
    let names: Vec<String> = packages.iter().filter_map(name).collect();
    unpack(&names)?;
    let rust = Rust::oldest(&[])?;
    for name in &names {
        let sh = Shell::new()?;
        sh.change_dir(folder().join(name));
        sh.remove_path("Cargo.lock")?;
        let cargo = || rust.cargo(&sh, "package-lowest");
        // The option is unstable.
        let lock = cargo()
            .env("RUSTC_BOOTSTRAP", "1")
            .arg("-Zdirect-minimal-versions");
        lock.args(["generate-lockfile", "--quiet"])
            .run()
            .context(name.clone())?;
        cargo()
            .args(["check", "--quiet", "--locked", "--all-features"])
            .run()
            .context(name.clone())?;
        println!("{name} compiles with its lowest dependencies and the oldest Rust");
        sh.remove_path("Cargo.lock")?;
        for features in [None, Some("--no-default-features")] {
            let cargo = workspace::cargo(&sh).env(
                "CARGO_TARGET_DIR",
                workspace::target().join("package-newest"),
            );
            // Otherwise cargo keeps to versions that the package's `rust-version` accepts.
            let cargo = cargo.env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "allow");
            cargo
                .args(["check", "--quiet"])
                .args(features)
                .run()
                .context(name.clone())?;
        }
        println!("{name} compiles with its newest dependencies and the installed Rust");
    }
    check_links()?;
    document(&packages, is_documented_for_all)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails if a link of a page leads to no file or heading. rustdoc checks the pages next to sources.
fn check_links() -> Result<()> {
    let sh = workspace::shell()?;
    let lychee = tools::from_crates_io("lychee", "0.24.2")?;
    let pages = cmd!(sh, "git ls-files *.md :!*/src/*").quiet().read()?;
    let check = cmd!(
        sh,
        "{lychee} --no-progress --offline --include-fragments=anchor-only"
    );
    check.quiet().args(pages.lines()).run()?;
    Ok(())
}

/// Builds the documentation of each library as docs.rs does, for this machine or for each of its
/// targets, and reads the pages. rustdoc's warnings are errors.
fn document(packages: &[Value], is_for_all: bool) -> Result<()> {
    let has_library = |package: &&Value| {
        let mut targets = package["targets"].as_array().into_iter().flatten();
        targets.any(|target| target["kind"][0] == "lib")
    };
    for package in packages.iter().filter(has_library) {
        let name = package["name"]
            .as_str()
            .context("cargo metadata has a package without a name")?;
        let settings = &package["metadata"]["docs"]["rs"];
        let words = |key: &str| -> Vec<_> {
            settings[key]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect()
        };
        let main = settings["default-target"].as_str().unwrap_or(HOST);
        let sh = Shell::new()?;
        sh.change_dir(folder().join(name));
        let targets: BTreeSet<_> = words("targets").into_iter().chain([main]).collect();
        for target in targets
            .into_iter()
            .filter(|target| is_for_all || *target == HOST)
        {
            // docs.rs has a nightly compiler. The oldest has no `doc(auto_cfg)`, so it shows no
            // conditions.
            let cargo = if target == HOST {
                let target = workspace::target().join("package-docs");
                let cargo = workspace::cargo(&sh).env("CARGO_TARGET_DIR", target);
                cargo.env("RUSTDOCFLAGS", "--cfg=docsrs -Dwarnings")
            } else {
                let cargo = Rust::oldest(&[target])?.cargo(&sh, "package-docs");
                cargo.env("RUSTDOCFLAGS", "-Dwarnings")
            };
            let cargo = cargo.env("RUSTC_BOOTSTRAP", "1");
            let cargo = cargo.args(["doc", "--quiet", "--lib", "--no-deps", "--target", target]);
            let cargo = cargo.args((settings["all-features"] == true).then_some("--all-features"));
            cargo
                .args(words("cargo-args"))
                .run()
                .with_context(|| format!("{name} for {target}"))?;
            let pages = workspace::target()
                .join("package-docs")
                .join(target)
                .join("doc");
            let [conditions, calls] = count(&pages.join(name.replace('-', "_")))?;
            // Other compilers show conditions differently, or none.
            let are_missing =
                target == HOST && words("rustdoc-args").contains(&"docsrs") && conditions == 0;
            ensure!(!are_missing, "the pages of {name} show no condition");
            let shows_calls = words("cargo-args").contains(&"-Zrustdoc-scrape-examples");
            ensure!(
                calls > 0 || !shows_calls,
                "the pages of {name} show no call of its examples"
            );
            println!(
                "{name} for {target}: docs.rs's pages, with {conditions} conditions, {calls} calls"
            );
        }
    }
    Ok(())
}

/// Returns how many conditions the pages of a package show ("Available on Linux only"), and how
/// many functions with calls from the examples. Fails if a page shows a condition that
/// only build.rs or a test sets.
fn count(pages: &Path) -> Result<[usize; 2]> {
    let (mut conditions, mut calls) = (0, 0);
    for entry in fs::read_dir(pages)? {
        let path = entry?.path();
        if path.is_dir() {
            let inner = count(&path)?;
            (conditions, calls) = (conditions + inner[0], calls + inner[1]);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let page = fs::read_to_string(&path)?;
            calls += page
                .matches("class=\"docblock scraped-example-list\"")
                .count();
            for shown in page.split("class=\"stab portability\"").skip(1) {
                let shown = shown.split("</div>").next().unwrap_or_default();
                let condition = shown.split("</span>").next().unwrap_or_default();
                let text = condition
                    .split('<')
                    .filter_map(|tag| Some(tag.split_once('>')?.1));
                let text = text.collect::<String>();
                ensure!(
                    !condition.contains("vdso_time_"),
                    "{} shows `{text}`",
                    path.display()
                );
                conditions += 1;
            }
        }
    }
    Ok([conditions, calls])
}

/// Returns the packages that are published.
fn published() -> Result<Vec<Value>> {
    let mut packages = workspace::packages(&workspace::shell()?, &["--no-deps"])?;
    packages.retain(|package| package["publish"].is_null());
    Ok(packages)
}

/// Returns the folder with the unpacked packages, each in a folder of its name.
fn folder() -> PathBuf {
    workspace::target().join("unpacked")
}

/// Packs all packages as `cargo publish` does, and unpacks them. The functions above compile them.
fn unpack(names: &[String]) -> Result<()> {
    let (sh, publish, to) = (
        workspace::shell()?,
        workspace::target().join("publish"),
        folder(),
    );
    let packages = names.iter().map(|name| format!("--package={name}"));
    let cargo = workspace::cargo(&sh).args(["package", "--no-verify", "--quiet", "--allow-dirty"]);
    cargo
        .args(packages)
        .env("CARGO_TARGET_DIR", &publish)
        .run()?;
    sh.remove_path(&to)?;
    let mut config = String::from("[patch.crates-io]\n");
    for name in names {
        let archive = publish.join(format!("package/{name}-{}.crate", workspace::VERSION));
        let to = to.join(name);
        sh.create_dir(&to)?;
        cmd!(
            sh,
            "tar --extract --file {archive} --directory {to} --strip-components=1"
        )
        .quiet()
        .run()?;
        // cargo must not look for a workspace in the folders above.
        let manifest = to.join("Cargo.toml");
        fs::write(
            &manifest,
            fs::read_to_string(&manifest)? + "\n[workspace]\n",
        )?;
        writeln!(config, "{name}.path = '{}'", to.display())?;
    }
    Ok(sh.write_file(to.join(".cargo/config.toml"), config)?)
}
