//! `cargo xtask clients`: runs the tests that quanta and its dependants publish, with quanta and
//! with vdso-time-quanta in its place, and compares them.
//!
//! The packages come from crates.io with their lock files. Only the dependencies that the patch
//! needs, and criterion, are changed.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use serde_json::Value;
use vdso_time_benches::pages::Table;
use vdso_time_kernel_runner::{cache, step};
use xshell::{Shell, cmd};

use crate::workspace;

const HEAD: [&str; 6] = ["package", "version", "features", "tests", "passed, original", "passed, patch"];

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
    /// This folder of `PATCHES` replaces quanta, a dependency.
    Dependency(&'static str),
    /// The tests are part of the original. So they are compiled with our sources from this folder,
    /// and the private items that they use.
    Sources { folder: &'static str, private: &'static str },
}

const PATCHES: &str = "crates/vdso-time-quanta/patch";

/// The folders of `PATCHES`, each with the name and the version of the package that it replaces.
const PATCHED: [(&str, &str, &str); 4] = [
    ("fastant", "fastant", "0.1.11"),
    ("minstant", "minstant", "0.1.7"),
    ("quanta-0.12", "quanta", "0.12.6"),
    ("quanta-0.13", "quanta", "0.13.0"),
];

const QUANTA: Patch =
    Patch::Sources { folder: "crates/vdso-time-quanta/src", private: include_str!("clients/quanta.rs") };

const QUANTA_0_12: Patch = Patch::Dependency("quanta-0.12");

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

/// What our sources need in the manifest of an original. `ROOT` is this repository.
const DEPENDENCIES: [(&str, &str); 5] = [
    ("vdso-time", "path = 'ROOT'\nfeatures = ['std']"),
    ("vdso-time-counter", "path = 'ROOT/crates/vdso-time-counter'\nfeatures = ['std']"),
    ("vdso-time-quanta", "path = 'ROOT/crates/vdso-time-quanta'"),
    ("portable-atomic", "version = '1'\nfeatures = ['fallback']"),
    ("web-time", "version = '1'"),
];

/// The names of the tests that passed, and how many failed.
struct Outcome {
    passed: Vec<String>,
    failed: usize,
}

pub(crate) fn run(write: bool, names: &[String]) -> Result<ExitCode> {
    let sh = workspace::shell()?;
    let packages = fetch(&sh)?;
    let mut table = Table::new("clients", HEAD);
    let mut faults = lacking_features(&sh, &packages)?;
    let is_wanted = |client: &&Client| names.is_empty() || names.iter().any(|name| name == client.name);
    for client in CLIENTS.iter().filter(is_wanted) {
        let [original, patched] =
            [false, true].map(|is_patched| client.test(&sh, &client.copy(&sh, &packages, is_patched)?));
        let (original, patched) = (original?, patched?);
        ensure!(!original.passed.is_empty(), "{}: no test passes", client.name);
        let is_missing = |test: &&String| !patched.passed.contains(test) && !NOT_RUN.contains(&test.as_str());
        for test in original.passed.iter().filter(is_missing) {
            writeln!(faults, "{} {}: {test} passes only with the original", client.name, client.version)?;
        }
        let features = if client.features.is_empty() { "default" } else { client.features };
        let counts = [original.passed.len() + original.failed, original.passed.len(), patched.passed.len()];
        let words = [client.version, features].map(String::from);
        table.add(client.name, words.into_iter().chain(counts.map(|count| count.to_string())).map(Some));
    }
    table.show(write && faults.is_empty(), &[])?;
    ensure!(faults.is_empty(), "{faults}");
    Ok(ExitCode::SUCCESS)
}

/// Has cargo fetch the packages. Returns what it says of them.
fn fetch(sh: &Shell) -> Result<Vec<Value>> {
    let folder = folder().join("fetch");
    let mut manifest =
        "[package]\nname = \"fetch\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n".to_owned();
    for (at, Client { name, version, .. }) in CLIENTS.iter().enumerate() {
        writeln!(
            manifest,
            "c{at} = {{ package = \"{name}\", version = \"={version}\", default-features = false }}"
        )?;
    }
    // Its tests are not run, but its features are compared.
    manifest += "minstant = '=0.1.7'\n";
    let path = folder.join("Cargo.toml");
    sh.write_file(folder.join("src/lib.rs"), "")?;
    sh.write_file(&path, manifest)?;
    let path = path.to_str().context("the path is not UTF-8")?;
    workspace::packages(sh, &["--filter-platform", "x86_64-unknown-linux-gnu", "--manifest-path", path])
}

fn package<'a>(packages: &'a [Value], name: &str, version: &str) -> Result<&'a Value> {
    let mut packages = packages.iter();
    packages.find(|it| it["name"] == name && it["version"] == version).context("cargo has not fetched it")
}

/// Returns a line for each feature that a patch lacks: cargo cannot resolve a package that asks for
/// it.
fn lacking_features(sh: &Shell, packages: &[Value]) -> Result<String> {
    let mut faults = String::new();
    for (folder, name, version) in PATCHED {
        let patch = sh.read_file(workspace::root().join(PATCHES).join(folder).join("Cargo.toml"))?;
        let features = package(packages, name, version)?["features"]
            .as_object()
            .context("cargo metadata lists no features")?;
        for feature in features.keys().filter(|feature| !patch.contains(&format!("\n{feature} = ["))) {
            writeln!(faults, "patch/{folder} lacks the feature {feature} of {name} {version}")?;
        }
    }
    Ok(faults)
}

fn folder() -> PathBuf {
    workspace::target().join("clients")
}

/// Returns the section of a manifest that replaces packages by folders of `PATCHES`.
fn patches(replaced: &[(&str, &str)]) -> String {
    let folder = workspace::root().join(PATCHES);
    let path = |(name, patch): &(&str, &str)| format!("{name}.path = '{}'\n", folder.join(patch).display());
    format!("[patch.crates-io]\n{}", replaced.iter().map(path).collect::<String>())
}

/// Lets the lock file beside a manifest name the patches.
fn unlock(sh: &Shell, manifest: &Path, replaced: &[&str]) -> Result<()> {
    let cargo = workspace::cargo(sh).args(["update", "--quiet", "--manifest-path"]).arg(manifest);
    cargo.args(replaced).run()?;
    let lock = sh.read_file(manifest.with_extension("lock"))?;
    ensure!(!lock.contains("[[patch.unused]]"), "{}: cargo does not use the patch", manifest.display());
    Ok(())
}

impl Client {
    /// Copies the package into the target folder, where the patch can change it.
    fn copy(&self, sh: &Shell, packages: &[Value], is_patched: bool) -> Result<PathBuf> {
        let source = package(packages, self.name, self.version)?["manifest_path"].as_str();
        let source = Path::new(source.context("cargo metadata has no manifest_path")?).with_file_name("");
        let kind = if is_patched { "patched" } else { "original" };
        let copy = folder().join(kind).join(format!("{}-{}", self.name, self.version));
        sh.remove_path(&copy)?;
        sh.create_dir(copy.with_file_name(""))?;
        // Keeps the files' times, by which cargo decides what to compile.
        cmd!(sh, "cp --recursive --preserve {source} {copy}").quiet().run()?;
        let path = copy.join("Cargo.toml");
        let mut manifest = sh.read_file(&path)? + "\n[workspace]\n";
        // Only benches use it, and it takes long to compile.
        if let Some((before, rest)) = manifest.split_once("\n[dev-dependencies.criterion]") {
            manifest = before.to_owned() + rest.find("\n[").map_or("", |next| &rest[next..]);
        }
        match &self.patch {
            _ if !is_patched => sh.write_file(path, manifest)?,
            Patch::Dependency(folder) => {
                sh.write_file(&path, manifest + &patches(&[("quanta", folder)]))?;
                unlock(sh, &path, &["quanta"])?;
            }
            Patch::Sources { folder, private } => {
                let root = workspace::root();
                for (name, value) in DEPENDENCIES {
                    let table = format!("[dependencies.{name}]\n");
                    if !manifest.contains(&table) {
                        writeln!(manifest, "{table}{}", value.replace("ROOT", &root.display().to_string()))?;
                    }
                }
                sh.write_file(path, manifest)?;
                replace_sources(&copy.join("src"), &root.join(folder), private)?;
            }
        }
        Ok(copy)
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
        let tests = || output.lines().filter_map(|line| line.strip_prefix("test "));
        let passed = tests().filter_map(|test| Some(test.strip_suffix(" ... ok")?.to_owned())).collect();
        Self { passed, failed: tests().filter(|test| test.ends_with(" ... FAILED")).count() }
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
