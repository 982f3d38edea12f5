//! `cargo xtask clients`: runs the tests that quanta and its dependants publish, with quanta and
//! with vdso-time-quanta in its place, and compares them.
//!
//! The packages come from crates.io with their lock files. Changed are only the dependencies that
//! the patch needs, and criterion.

mod ratios;

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use fs_err as fs;
use serde_json::Value;
use vdso_time_kernel_runner::{cache, step};
use xshell::{Shell, cmd};

use crate::{page, workspace};

const PAGE: &str = "docs/CLIENTS.md";

/// The seconds that the tests of one package may run.
const LIMIT: &str = "600";

/// A published package with tests.
struct Client {
    name: &'static str,
    version: &'static str,
    features: &'static str,
    patch: Patch,
}

/// How vdso-time-quanta takes the place of the original.
enum Patch {
    /// This folder and version of `PATCHES` replace quanta, a dependency.
    Dependency(&'static str, &'static str),
    /// The tests are part of the original. So they are compiled with our sources from this folder,
    /// and the private items that they use.
    Sources { folder: &'static str, private: &'static str },
}

const PATCHES: &str = "crates/vdso-time-quanta/patch";

const QUANTA: Patch =
    Patch::Sources { folder: "crates/vdso-time-quanta/src", private: include_str!("clients/quanta.rs") };

const QUANTA_0_12: Patch = Patch::Dependency("quanta-0.12", "0.12.99");

const FASTANT: Patch = Patch::Sources {
    folder: "crates/vdso-time-quanta/patch/fastant",
    private: include_str!("clients/fastant.rs"),
};

const fn client(name: &'static str, version: &'static str, features: &'static str, patch: Patch) -> Client {
    Client { name, version, features, patch }
}

const CLIENTS: &[Client] = &[
    client("quanta", "0.12.6", "", QUANTA),
    client("quanta", "0.13.0", "", QUANTA),
    client("fastant", "0.1.11", "atomic", FASTANT),
    client("governor", "0.10.4", "", QUANTA_0_12),
    client("metrics-util", "0.20.4", "", QUANTA_0_12),
    client("moka", "0.12.16", "sync,future,quanta", QUANTA_0_12),
];

/// Tests of what the patch does not have. The page explains them.
const NOT_RUN: &[&str] = &["stats::tests::basic"];

/// Begins a package of a lock file.
const PACKAGE: &str = "[[package]]\n";

/// What `vdso-time-quanta` depends on. The root's lock file has the versions.
const DEPENDENCIES: &[&str] = &["libc", "portable-atomic", "web-time"];

/// The names of the tests that passed and that failed.
#[derive(Default)]
struct Outcome {
    passed: Vec<String>,
    failed: Vec<String>,
}

pub(crate) fn run(write: bool, ratios: bool, names: &[String]) -> Result<ExitCode> {
    let sh = workspace::shell()?;
    let page = workspace::root().join(PAGE);
    if ratios {
        ratios::run(&sh, write, &page)?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_wanted = |client: &&Client| names.is_empty() || names.iter().any(|name| name == client.name);
    let sources = sources(&sh)?;
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    table.set_header(["package", "version", "features", "tests", "passed, original", "passed, patch"]);
    let mut faults = String::new();
    for client in CLIENTS.iter().filter(is_wanted) {
        let [original, patched] = [false, true].map(|is_patched| {
            let folder = client.copy(&sources, is_patched)?;
            client.test(&sh, &folder)
        });
        let (original, patched) = (original?, patched?);
        ensure!(!original.passed.is_empty(), "{}: no test passes", client.name);
        let is_missing = |test: &&String| !patched.passed.contains(test) && !NOT_RUN.contains(&test.as_str());
        for test in original.passed.iter().filter(is_missing) {
            writeln!(faults, "{} {}: {test} passes only with the original", client.name, client.version)?;
        }
        let counts = [&original, &patched].map(|outcome| outcome.passed.len().to_string());
        let tests = (original.passed.len() + original.failed.len()).to_string();
        let [original, patched] = counts;
        let features = if client.features.is_empty() { "default" } else { client.features };
        table.add_row([client.name, client.version, features, &tests, &original, &patched]);
    }
    println!("{table}");
    ensure!(faults.is_empty(), "{faults}");
    if write {
        let old = fs::read_to_string(&page)?;
        fs::write(page, page::with_table(&old, &table.to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where cargo has put the sources of the packages.
fn sources(sh: &Shell) -> Result<Vec<(String, PathBuf)>> {
    let folder = folder().join("fetch");
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/lib.rs"), "")?;
    let mut manifest =
        "[package]\nname = \"fetch\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n".to_owned();
    for (at, Client { name, version, .. }) in CLIENTS.iter().enumerate() {
        writeln!(
            manifest,
            "c{at} = {{ package = \"{name}\", version = \"={version}\", default-features = false }}"
        )?;
    }
    let path = folder.join("Cargo.toml");
    fs::write(&path, manifest)?;
    let metadata = |argument: Option<&str>| {
        let cargo =
            workspace::cargo(sh).args(["metadata", "--quiet", "--format-version", "1"]).args(argument);
        cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu", "--manifest-path"]).arg(&path)
    };
    // Offline first: then packages that are there are not replaced by newer ones.
    let metadata = metadata(Some("--offline")).ignore_stderr().read().or_else(|_| metadata(None).read())?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let source = |package: &Value| {
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let folder = Path::new(&text("manifest_path")?).parent()?.to_path_buf();
        Some((format!("{}-{}", text("name")?, text("version")?), folder))
    };
    Ok(packages.iter().filter_map(source).collect())
}

fn folder() -> PathBuf {
    workspace::target().join("clients")
}

impl Client {
    /// Copies the package into the target folder, where the patch can change it.
    fn copy(&self, sources: &[(String, PathBuf)], is_patched: bool) -> Result<PathBuf> {
        let name = format!("{}-{}", self.name, self.version);
        let (_, source) =
            sources.iter().find(|(found, _)| *found == name).context("cargo has not fetched it")?;
        let copy = folder().join(if is_patched { "patched" } else { "original" }).join(&name);
        let sh = workspace::shell()?;
        sh.remove_path(&copy)?;
        sh.create_dir(copy.with_file_name(""))?;
        // With the times of its files, from which cargo sees what to compile.
        cmd!(sh, "cp --recursive --preserve {source} {copy}").quiet().run()?;
        let mut manifest = fs::read_to_string(copy.join("Cargo.toml"))? + "\n[workspace]\n";
        // Only benches use it, and it takes long to compile.
        if let Some((before, rest)) = manifest.split_once("\n[dev-dependencies.criterion]") {
            manifest = before.to_owned() + rest.find("\n[").map_or("", |next| &rest[next..]);
        }
        if is_patched {
            self.patch(&copy, &mut manifest)?;
        }
        fs::write(copy.join("Cargo.toml"), manifest)?;
        Ok(copy)
    }

    fn patch(&self, copy: &Path, manifest: &mut String) -> Result<()> {
        let root = workspace::root();
        let read = |path: &Path| fs::read_to_string(path);
        let (lock, ours) = (copy.join("Cargo.lock"), read(&root.join("Cargo.lock"))?);
        let mut new = blocks(&ours).filter(|block| DEPENDENCIES.contains(&name(block))).collect::<Vec<_>>();
        let published = read(&lock)?;
        let quanta;
        match self.patch {
            Patch::Dependency(folder, version) => {
                let folder = root.join(PATCHES).join(folder);
                writeln!(manifest, "[patch.crates-io]\nquanta.path = '{}'", folder.display())?;
                quanta = format!("name = \"quanta\"\nversion = \"{version}\"\n\n");
                new.push(&quanta);
            }
            Patch::Sources { folder, private } => {
                let shim = root.join("crates/vdso-time-quanta");
                for (name, value) in [
                    ("vdso-time", format!("path = '{}'\nfeatures = [\"std\"]", root.display())),
                    (
                        "vdso-time-counter",
                        format!(
                            "path = '{}'\nfeatures = [\"std\"]",
                            root.join("crates/vdso-time-counter").display()
                        ),
                    ),
                    ("vdso-time-quanta", format!("path = '{}'", shim.display())),
                    ("portable-atomic", "version = \"1\"\nfeatures = [\"fallback\"]".into()),
                    ("web-time", "version = \"1\"".into()),
                ] {
                    let table = format!("[dependencies.{name}]\n");
                    if !manifest.contains(&table) {
                        writeln!(manifest, "{table}{value}")?;
                    }
                }
                replace_sources(&copy.join("src"), &root.join(folder), private)?;
            }
        }
        let is_kept = |block: &&str| new.iter().all(|other| name(other) != name(block));
        let (head, _) = published.split_once(PACKAGE).context("it has no lock file")?;
        let all = blocks(&published).filter(is_kept).chain(new.iter().copied());
        Ok(fs::write(
            lock,
            all.fold(head.to_owned(), |text, block| text + PACKAGE + block.trim_end() + "\n\n"),
        )?)
    }

    /// Compiles the tests, and runs them with a limit. The output is in `tests.log`.
    fn test(&self, sh: &Shell, folder: &Path) -> Result<Outcome> {
        step(&format!("testing {}", folder.strip_prefix(workspace::target())?.display()));
        let cargo = |limit: &str, arguments: &[&str]| {
            let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let cargo =
                cmd!(sh, "timeout --kill-after 10 {limit} {program} test --lib --tests --no-fail-fast");
            let cargo = cargo.env("CARGO_TARGET_DIR", self::folder()).arg("--manifest-path");
            let cargo =
                cargo.arg(folder.join("Cargo.toml")).args(["--features", self.features]).args(arguments);
            cargo.quiet().ignore_status().output()
        };
        let build = cargo("1800", &["--no-run", "--quiet"])?;
        ensure!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
        let is_unused = fs::read_to_string(folder.join("Cargo.lock"))?.contains("[[patch.unused]]");
        ensure!(!is_unused, "{}: cargo does not use the patch", folder.display());
        // The tests of quanta 0.12 share its recent time.
        let arguments: &[&str] = match self.patch {
            Patch::Sources { .. } => &["--", "--test-threads=1"],
            Patch::Dependency(..) => &[],
        };
        let run = cargo(LIMIT, arguments)?;
        fs::write(folder.join("tests.log"), [&run.stdout[..], &run.stderr].concat())?;
        ensure!(run.status.code() != Some(124), "{}: the tests hang", folder.display());
        Ok(Outcome::of(&String::from_utf8_lossy(&run.stdout)))
    }
}

impl Outcome {
    /// Reads the lines of the test programs: `test name ... ok`.
    fn of(output: &str) -> Self {
        let named = |result: &str| {
            let name = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(result)?.to_owned());
            output.lines().filter_map(name).collect()
        };
        Self { passed: named(" ... ok"), failed: named(" ... FAILED") }
    }
}

/// Compiles the package from our sources and its own tests.
fn replace_sources(folder: &Path, ours: &Path, private: &str) -> Result<()> {
    for ours in cache::entries(ours)?.iter().filter(|path| path.extension() == Some(OsStr::new("rs"))) {
        let path = folder.join(ours.file_name().unwrap_or_default());
        let published = fs::read_to_string(&path).unwrap_or_default();
        let tests = published.find("#[cfg(test)]\nmod tests").map_or("", |at| &published[at..]);
        let private = if path.ends_with("lib.rs") { private } else { "" };
        fs::write(&path, format!("{}\n{private}\n{tests}", fs::read_to_string(ours)?))?;
    }
    Ok(())
}

/// The packages of a lock file.
fn blocks(lock: &str) -> impl Iterator<Item = &str> {
    lock.split(PACKAGE).skip(1)
}

/// The name of a package of a lock file.
fn name(block: &str) -> &str {
    block.split('"').nth(1).unwrap_or_default()
}
