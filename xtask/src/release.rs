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
use crate::{licences, package, tools, workspace};

/// A check, and what it does: it returns what it found.
type Check = (&'static str, fn(&Shell) -> Result<String>);

/// The quick ones are first. Those after `packages` read the folder that it fills.
const CHECKS: &[Check] = &[
    ("repository", repository),
    ("clean tree", clean),
    ("versions", versions),
    ("commit", commit),
    ("changelog", changelog),
    ("pages", pages),
    ("licences", |sh| xtask(sh, "licences")),
    ("advisories", licences::advisories),
    ("public API", |sh| xtask(sh, "api")),
    ("semver", semver),
    ("packages", |sh| xtask(sh, "package")),
    ("publish", |sh| publish(sh, true)),
    ("docs.rs", docs),
    ("first program", first_program),
    ("dist", |sh| xtask(sh, "dist")),
];

/// What docs.rs builds for, unless a package says otherwise.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// What pages say before the first release: that nothing is published, and folders of a checkout.
const NOT_YET: &[&str] = &[
    r"on crates\.io yet",
    r"[Ii]n a checkout",
    r#"path = "(\.\./)*vdso-time"#,
    r"--path (vdso-time/)?(crates|tools)/",
    r"^cargo run .*-p vdso-doctor",
];

/// The last version that reads the JSON of rustdoc 1.85. As in `cargo xtask api`, both are fixed.
const SEMVER_CHECKS: &str = "0.42.0";

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
        publish(&sh, false)?;
        cmd!(sh, "git tag v{VERSION}").run()?;
        println!("published; `git push origin v{VERSION}` has the programs built and uploaded");
    }
    Ok(ExitCode::SUCCESS)
}

/// Publishes what crates.io lacks: it may have refused a package after it took others.
fn publish(sh: &Shell, dry_run: bool) -> Result<String> {
    let names = package::names()?;
    let published: Vec<_> = names.iter().filter(|name| is_on_crates_io(sh, name)).collect();
    let missing = names.len() - published.len();
    if missing > 0 {
        let cargo = workspace::cargo(sh).args(["publish", "--workspace"]);
        let cargo = cargo.args(dry_run.then_some(["--dry-run", "--quiet"]).into_iter().flatten());
        cargo.args(published.iter().map(|name| format!("--exclude={name}"))).run()?;
    }
    Ok(format!("crates.io lacks {missing} of {} packages", names.len()))
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

/// What is published is the newest commit of main. A later run for the tag needs the tag's name.
fn commit(sh: &Shell) -> Result<String> {
    let tag = format!("v{VERSION}");
    if sh.var("GITHUB_REF_TYPE").is_ok_and(|kind| kind == "tag") {
        let name = sh.var("GITHUB_REF_NAME")?;
        ensure!(name == tag, "the tag is {name}, but the version is {VERSION}");
        let ancestor = cmd!(sh, "git merge-base --is-ancestor HEAD origin/main").quiet().run();
        ancestor.with_context(|| format!("the commit of {tag} is not in origin/main"))?;
        return Ok(format!("origin/main has the commit of {tag}"));
    }
    let head = cmd!(sh, "git rev-parse HEAD").quiet().read()?;
    let refs = cmd!(sh, "git ls-remote origin").quiet().ignore_stderr().read();
    let refs = refs.context("cannot read the remote `origin`, the repository on GitHub")?;
    let remote = |name: &str| refs.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix('\t'));
    ensure!(remote("refs/heads/main") == Some(&head), "HEAD is not origin's main: pull or push");
    // The commit that an annotated tag names.
    let peeled = format!("{tag}^{{}}");
    let here = cmd!(sh, "git rev-parse --quiet --verify {peeled}").quiet().ignore_status().read()?;
    let there = [peeled, tag.clone()].iter().find_map(|name| remote(&format!("refs/tags/{name}")));
    for commit in [&*here, there.unwrap_or_default()] {
        ensure!(commit.is_empty() || commit == head, "the tag {tag} is on another commit, {commit}");
    }
    Ok("HEAD is origin's main, and no other commit has the tag".into())
}

fn changelog(sh: &Shell) -> Result<String> {
    let text = sh.read_file("CHANGELOG.md")?;
    let heading = text.lines().find(|line| line.starts_with("## ")).unwrap_or_default();
    let is_released = heading.starts_with(&format!("## {VERSION} - 20"));
    ensure!(is_released, "the first heading of CHANGELOG.md must be `## {VERSION} - DATE`, not `{heading}`");
    Ok(heading.into())
}

fn pages(sh: &Shell) -> Result<String> {
    let grep = cmd!(sh, "git grep --line-number --extended-regexp")
        .args(NOT_YET.iter().flat_map(|text| ["-e", text]));
    let grep =
        grep.args(["--", "README.md", "crates/*/README.md", "tools/*/README.md", "docs/*.md", ".github"]);
    let found = grep.quiet().ignore_status().output()?;
    // 0: it found a line, 1: it found none.
    let has_run = matches!(found.status.code(), Some(0 | 1));
    ensure!(has_run, "git grep failed: {}", String::from_utf8_lossy(&found.stderr));
    let early = String::from_utf8_lossy(&found.stdout);
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
    let tool = tools::from_crates_io("cargo-semver-checks", SEMVER_CHECKS)?;
    let path = format!("{}:{}", tool.parent().context("a folder")?.display(), sh.var("PATH")?);
    let packages = package::names()?.into_iter().map(|name| format!("--package={name}"));
    let cargo = Compiler::oldest()?.cargo(sh, "semver").env("PATH", path);
    // The newest versions that this compiler accepts.
    let cargo = cargo.env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "fallback");
    cargo.args(["semver-checks", "--baseline-rev", last]).args(packages).run()?;
    Ok(format!("compared with {last}"))
}

/// Builds the documentation as docs.rs does.
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
        for target in words("targets").into_iter().chain([main]) {
            if !ARCHES.iter().any(|arch| arch.triple == target && arch.is_packaged()) {
                oldest.add_std(target)?;
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

#[cfg(test)]
mod tests {
    use xshell::Shell;

    use super::{VERSION, commit};
    use crate::workspace;

    #[test]
    fn a_release_is_the_newest_commit_of_main_or_the_tag_of_the_version_in_it() {
        let sh = Shell::new().unwrap();
        let folder = workspace::target().join("commit-test");
        sh.remove_path(&folder).unwrap();
        sh.create_dir(folder.join("clone")).unwrap();
        sh.change_dir(folder.join("clone"));
        let git = |arguments: &str| {
            let person = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
            sh.cmd("git").args(person).args(arguments.split(' ')).quiet().run().unwrap();
        };
        let fails = |why: &str| {
            let error = format!("{:#}", commit(&sh).unwrap_err());
            assert!(error.contains(why), "{error}");
        };
        let tag = format!("v{VERSION}");

        sh.set_var("GITHUB_REF_TYPE", "branch");
        git("init --quiet --initial-branch=main");
        git("commit --quiet --allow-empty --message=1");
        fails("the remote `origin`");
        git("init --quiet --bare ../origin");
        git("remote add origin ../origin");
        fails("pull or push");
        git("push --quiet origin main");
        commit(&sh).unwrap();
        git("commit --quiet --allow-empty --message=2");
        fails("pull or push");
        git("push --quiet origin main");
        commit(&sh).unwrap();

        git(&format!("tag {tag} HEAD~1"));
        fails("is on another commit");
        git(&format!("push --quiet origin {tag}"));
        git(&format!("tag --delete {tag}"));
        fails("is on another commit");
        git(&format!("push --quiet --delete origin {tag}"));
        git(&format!("tag --annotate --message=1 {tag}"));
        git(&format!("push --quiet origin {tag}"));
        commit(&sh).unwrap();

        sh.set_var("GITHUB_REF_TYPE", "tag");
        sh.set_var("GITHUB_REF_NAME", "v0.0.0");
        fails("but the version is");
        sh.set_var("GITHUB_REF_NAME", tag);
        commit(&sh).unwrap();
        git("commit --quiet --allow-empty --message=3");
        fails("is not in origin/main");
    }
}
