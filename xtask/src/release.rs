//! `cargo xtask release`: what a release needs, one line for each check, and then the release.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;
use serde_json::Value;
use vdso_time_kernel_runner::targets::ARCHES;
use vdso_time_kernel_runner::toolchain::Compiler;
use xshell::{Shell, cmd};

use crate::chroot::Chroot;
use crate::workspace::VERSION;
use crate::{package, tools, workspace};

/// A check, and what it does: it returns what it found.
type Check = (&'static str, fn(&Shell) -> Result<String>);

/// The quick ones are first. Those after `packages` read the folder that it fills.
const CHECKS: &[Check] = &[
    ("repository", repository),
    ("clean tree", clean),
    ("versions", versions),
    ("changelog", changelog),
    ("pages", pages),
    ("licences", |sh| xtask(sh, "licences")),
    ("public API", |sh| xtask(sh, "api")),
    ("semver", semver),
    ("packages", |sh| xtask(sh, "package")),
    ("docs.rs", docs),
    ("first program", first_program),
    ("dist", |sh| xtask(sh, "dist")),
];

/// What docs.rs builds for, unless a package says otherwise.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// What pages say before the first release: that nothing is published, and folders of a checkout.
const NOT_YET: &str = r#"on crates\.io yet|path = "(\.\./)*vdso-time|--path crates/"#;

/// The manifest of the first program.
const FIRST_MANIFEST: &str = r#"
[package]
name = "clock"
edition = "2024"

[dependencies]
vdso-time.path = "../vdso-time"

[workspace]
"#;

/// Stops at the first failure, or with `dry_run` at the end.
pub(crate) fn run(dry_run: bool, names: &[String]) -> Result<ExitCode> {
    let sh = workspace::shell()?;
    let mut failures = Vec::new();
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(&**part));
    ensure!(CHECKS.iter().any(|(name, _)| is_chosen(name)), "no check has such a name");
    for (name, check) in CHECKS.iter().filter(|(name, _)| is_chosen(name)) {
        let start = Instant::now();
        let result = check(&sh);
        let seconds = start.elapsed().as_secs();
        match result {
            Ok(found) => println!("ok      {name} ({seconds} s): {found}"),
            Err(error) => {
                println!("FAILED  {name} ({seconds} s): {error:#}");
                failures.push(*name);
            }
        }
        ensure!(dry_run || failures.is_empty(), "nothing was published");
    }
    ensure!(failures.is_empty(), "not ready for a release: {}", failures.join(", "));
    if !dry_run {
        // crates.io may refuse a package after it took others: new names are limited in a minute.
        let published: Vec<_> =
            package::names()?.into_iter().filter(|name| is_on_crates_io(&sh, name)).collect();
        let rest = published.iter().map(|name| format!("--exclude={name}"));
        if published.len() < package::names()?.len() {
            workspace::cargo(&sh).args(["publish", "--workspace"]).args(rest).run()?;
        }
        cmd!(sh, "git tag v{VERSION}").run()?;
        println!("published; `git push origin v{VERSION}` has the programs built and uploaded");
    }
    Ok(ExitCode::SUCCESS)
}

fn is_on_crates_io(sh: &Shell, name: &str) -> bool {
    let info = ["info", "--quiet", "--registry=crates-io", &format!("{name}@{VERSION}")];
    workspace::cargo(sh).args(info).ignore_stdout().ignore_stderr().quiet().run().is_ok()
}

/// Another command of xtask, whose output goes to a file.
fn xtask(sh: &Shell, command: &str) -> Result<String> {
    let log = workspace::target().join("release-checks").join(command);
    fs::create_dir_all(log.parent().context("a folder")?)?;
    let output = workspace::cargo(sh).args(["xtask", command]).ignore_status().output()?;
    fs::write(&log, [output.stdout, output.stderr].concat())?;
    let text = fs::read_to_string(&log)?;
    let last = text.lines().last().unwrap_or_default();
    ensure!(output.status.success(), "`cargo xtask {command}` failed: {last}; {} has more", log.display());
    Ok(format!("`cargo xtask {command}`"))
}

fn repository(_: &Shell) -> Result<String> {
    let mut packages = package::published()?;
    packages.retain(|package| ["repository", "homepage"].iter().any(|key| package[*key].is_null()));
    let names: Vec<_> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    ensure!(
        names.is_empty(),
        "set `repository` and `homepage` in [workspace.package] of Cargo.toml, and \
         `repository.workspace = true` and `homepage.workspace = true` in {}",
        names.join(", ")
    );
    Ok("repository and homepage are set".into())
}

fn clean(sh: &Shell) -> Result<String> {
    let changes = cmd!(sh, "git status --porcelain").quiet().read()?;
    ensure!(changes.is_empty(), "commit or remove the changes that `git status` lists");
    Ok("every file is committed".into())
}

fn versions(_: &Shell) -> Result<String> {
    let (packages, names) = (package::published()?, package::names()?);
    for package in &packages {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let ours = dependencies.filter(|dependency| names.iter().any(|name| dependency["name"] == **name));
        for dependency in ours.filter(|dependency| dependency["kind"] != "dev") {
            let [name, other] = [&package["name"], &dependency["name"]];
            // It uses hidden items of exactly one version.
            let sign = if name == "vdso-time-counter" { '=' } else { '^' };
            let (version, needed) = (&dependency["req"], format!("{sign}{VERSION}"));
            ensure!(version == &*needed, "{name} needs {other} {version}, not {needed}");
        }
        ensure!(package["version"] == VERSION, "{} has another version than {VERSION}", package["name"]);
    }
    Ok(format!("{} packages of {VERSION}: {}", names.len(), names.join(", ")))
}

fn changelog(sh: &Shell) -> Result<String> {
    let text = sh.read_file("CHANGELOG.md")?;
    let heading = text.lines().find(|line| line.starts_with("## ")).unwrap_or_default();
    let is_released = heading.starts_with(&format!("## {VERSION} - 20"));
    ensure!(is_released, "the first heading of CHANGELOG.md must be `## {VERSION} - DATE`, not `{heading}`");
    Ok(heading.into())
}

fn pages(sh: &Shell) -> Result<String> {
    let early = cmd!(sh, "git grep --extended-regexp -e {NOT_YET} -- README.md crates/*/README.md docs/*.md");
    let early = early.quiet().ignore_status().read()?;
    ensure!(
        early.is_empty(),
        "name the version, or for a patch the repository, instead of a folder:\n{early}"
    );
    Ok("every page names the version".into())
}

fn semver(sh: &Shell) -> Result<String> {
    let tags = cmd!(sh, "git tag --list v* --merged=HEAD --sort=-version:refname").quiet().read()?;
    let Some(last) = tags.lines().find(|tag| tag[1..] != *VERSION) else {
        return Ok("first release: nothing to compare".into());
    };
    let tool = tools::from_crates_io("cargo-semver-checks", "0.51.0")?;
    let packages = package::names()?.into_iter().map(|name| format!("--package={name}"));
    cmd!(sh, "{tool} semver-checks --baseline-rev {last}").args(packages).quiet().run()?;
    Ok(format!("compared with {last}"))
}

/// Builds the documentation as docs.rs does, for the targets whose standard library Debian has.
fn docs(_: &Shell) -> Result<String> {
    let (installed, oldest) = (Compiler::for_target(HOST)?, Compiler::oldest()?);
    let mut built = 0;
    for package in package::published()? {
        let name = package["name"].as_str().context("a package's name")?;
        let settings = &package["metadata"]["docs"]["rs"];
        let words = |key: &str| -> Vec<_> {
            settings[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let main = settings["default-target"].as_str().unwrap_or(HOST);
        let sh = Shell::new()?;
        sh.change_dir(package::folder().join(name));
        // It names the lowest versions.
        sh.remove_path("Cargo.lock")?;
        for target in words("targets").into_iter().chain([main]) {
            if !ARCHES.iter().any(|arch| arch.triple == target && arch.is_packaged()) {
                continue;
            }
            let flags = [vec!["--cfg=docsrs", "-Dwarnings"], words("rustdoc-args")].concat().join(" ");
            let cargo = if target == HOST { &installed } else { &oldest }.cargo(&sh, "release-docs");
            // docs.rs has a nightly compiler.
            let cargo = cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTDOCFLAGS", flags);
            let cargo = cargo.args(["doc", "--quiet", "--lib", "--no-deps", "--target", target]);
            let cargo = cargo.args((settings["all-features"] == true).then_some("--all-features"));
            cargo.run().with_context(|| format!("{name} for {target}"))?;
            built += 1;
        }
    }
    Ok(format!("{built} builds of {} packages", package::names()?.len()))
}

/// Compiles and runs the README's first example in a system that has Debian's Rust, and the package
/// instead of this repository. Nothing is downloaded in it.
fn first_program(_: &Shell) -> Result<String> {
    let arch = ARCHES.iter().find(|arch| arch.name == "x86_64").context("an architecture")?;
    let chroot = Chroot::new(arch, "trixie", &["base-files", "cargo"])?;
    let sh = Shell::new()?;
    let (home, from) = (chroot.folder.join("root"), package::folder().join("vdso-time"));
    // A script of the package gcc makes this link.
    std::os::unix::fs::symlink("gcc", chroot.folder.join("usr/bin/cc"))?;
    cmd!(sh, "cp --recursive {from} {home}/vdso-time").quiet().run()?;
    let readme = sh.read_file(from.join("README.md"))?;
    let example = readme.split("```").find_map(|block| block.strip_prefix("rust\n"));
    let example = example.context("README.md has no example")?;
    sh.write_file(home.join("clock/Cargo.toml"), FIRST_MANIFEST)?;
    sh.write_file(home.join("clock/src/main.rs"), format!("fn main() {{\n{example}}}\n"))?;
    sh.change_dir(&home);
    let vendor = ["vendor", "--manifest-path=clock/Cargo.toml", "vendor"];
    sh.write_file(".cargo/config.toml", workspace::cargo(&sh).args(vendor).ignore_stderr().read()?)?;
    let words =
        ["cargo", "run", "--quiet", "--release", "--offline", "--manifest-path=/root/clock/Cargo.toml"];
    let printed = chroot.command(&words).read()?;
    let Some((seconds, _)) = printed.split_once(" s since the Epoch") else { bail!("it printed {printed}") };
    let seconds: i64 = seconds.parse()?;
    ensure!(seconds > 1_700_000_000, "it printed {printed}");
    Ok(format!("Debian trixie's cargo builds README.md's: {}", printed.replace('\n', "; ")))
}
