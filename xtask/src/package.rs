//! `cargo xtask package`: the packages as they would be published, each compiled alone: by the
//! oldest supported Rust with the lowest version of each dependency that it allows, and by the
//! installed Rust with the newest. Then their documentation as docs.rs builds it: for this machine,
//! and with `--docs` for every target.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::rust::Rust;
use crate::{tools, workspace};

/// The target that docs.rs builds for, unless a package names others.
const HOST: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(is_documented_for_all: bool) -> Result<ExitCode> {
    let packages = published()?;
    let name = |package: &Value| package["name"].as_str().map(String::from);
    let names: Vec<String> = packages.iter().filter_map(name).collect();
    unpack(&names)?;
    let rust = Rust::oldest(&[])?;
    for name in &names {
        let sh = Shell::new()?;
        sh.change_dir(directory().join(name));
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
/// targets, and reads the pages.
fn document(packages: &[Value], is_for_all: bool) -> Result<()> {
    for package in packages {
        let targets = package["targets"].as_array();
        let targets = targets.context("cargo metadata has a package without targets")?;
        if !targets.iter().any(|target| target["kind"][0] == "lib") {
            continue;
        }
        let name = package["name"].as_str();
        let name = name.context("cargo metadata has a package without a name")?;
        let settings = &package["metadata"]["docs"]["rs"];
        let mut targets = BTreeSet::from([settings["default-target"].as_str().unwrap_or(HOST)]);
        targets.extend(words(settings, "targets"));
        for target in targets {
            if is_for_all || target == HOST {
                document_for(target, name, settings)?;
            }
        }
    }
    Ok(())
}

/// Returns the texts of a list in the settings for docs.rs.
fn words<'a>(settings: &'a Value, key: &str) -> Vec<&'a str> {
    let list = settings[key].as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

/// Builds the documentation of a package for a target. rustdoc's warnings are errors.
fn document_for(target: &str, name: &str, settings: &Value) -> Result<()> {
    let sh = Shell::new()?;
    sh.change_dir(directory().join(name));
    let built = workspace::target().join("package-docs");
    // docs.rs has a nightly compiler. The oldest has no `doc(auto_cfg)`, so it shows no conditions.
    let cargo = if target == HOST {
        let cargo = workspace::cargo(&sh).env("CARGO_TARGET_DIR", &built);
        cargo.env("RUSTDOCFLAGS", "--cfg=docsrs -Dwarnings")
    } else {
        let cargo = Rust::oldest(&[target])?.cargo(&sh, "package-docs");
        cargo.env("RUSTDOCFLAGS", "-Dwarnings")
    };
    let mut cargo = cargo.env("RUSTC_BOOTSTRAP", "1").args([
        "doc",
        "--quiet",
        "--lib",
        "--no-deps",
        "--target",
        target,
    ]);
    if settings["all-features"] == true {
        cargo = cargo.arg("--all-features");
    }
    let options = words(settings, "cargo-args");
    cargo
        .args(&options)
        .run()
        .with_context(|| format!("{name} for {target}"))?;

    let mut shown = Shown::default();
    let pages = built.join(target).join("doc");
    shown.read(&pages.join(name.replace('-', "_")))?;
    let Shown { conditions, calls } = shown;
    // Other compilers show conditions differently, or none.
    let shows_conditions = target == HOST && words(settings, "rustdoc-args").contains(&"docsrs");
    ensure!(
        conditions > 0 || !shows_conditions,
        "the pages of {name} show no condition"
    );
    let shows_calls = options.contains(&"-Zrustdoc-scrape-examples");
    ensure!(
        calls > 0 || !shows_calls,
        "the pages of {name} show no call of its examples"
    );
    println!("{name} for {target}: docs.rs's pages, with {conditions} conditions, {calls} calls");
    Ok(())
}

/// The contents of the pages of a package.
#[derive(Default)]
struct Shown {
    /// How many conditions ("Available on Linux only").
    conditions: usize,
    /// How many functions with calls from the examples.
    calls: usize,
}

impl Shown {
    /// Counts in the pages of a directory. Fails if a page shows a condition that only build.rs or
    /// a test sets.
    fn read(&mut self, pages: &Path) -> Result<()> {
        for path in workspace::entries(pages)? {
            if path.is_dir() {
                self.read(&path)?;
                continue;
            }
            if path.extension() != Some(OsStr::new("html")) {
                continue;
            }
            let page = fs::read_to_string(&path)?;
            let calls = page.matches("class=\"docblock scraped-example-list\"");
            self.calls += calls.count();
            for shown in page.split("class=\"stab portability\"").skip(1) {
                let shown = shown.split("</div>").next().unwrap_or_default();
                let condition = shown.split("</span>").next().unwrap_or_default();
                ensure!(
                    !condition.contains("vdso_time_"),
                    "{} shows {condition}",
                    path.display()
                );
                self.conditions += 1;
            }
        }
        Ok(())
    }
}

/// Returns the packages that are published.
fn published() -> Result<Vec<Value>> {
    let mut packages = workspace::packages(&workspace::shell()?, &["--no-deps"])?;
    packages.retain(|package| package["publish"].is_null());
    Ok(packages)
}

/// Returns the directory with the unpacked packages, each in a directory of its name.
fn directory() -> PathBuf {
    workspace::target().join("unpacked")
}

/// Packs all packages as `cargo publish` does, and unpacks them, so that the functions above can
/// compile them.
fn unpack(names: &[String]) -> Result<()> {
    let sh = workspace::shell()?;
    let publish = workspace::target().join("publish");
    let to = directory();
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
        // cargo must not look for a workspace in the directories above.
        let manifest = to.join("Cargo.toml");
        fs::write(
            &manifest,
            fs::read_to_string(&manifest)? + "\n[workspace]\n",
        )?;
        writeln!(config, "{name}.path = '{}'", to.display())?;
    }
    Ok(sh.write_file(to.join(".cargo/config.toml"), config)?)
}
