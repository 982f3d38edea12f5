//! `cargo xtask clients`: runs the tests that quanta and its dependants publish, with
//! vdso-time-quanta instead of quanta. All must pass.
//!
//! The packages come from crates.io with their lock files. Only the dependencies that the patch
//! needs, and criterion, are changed.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::workspace::{self, step};

/// A published package with tests.
struct Client {
    name: &'static str,
    version: &'static str,
    features: &'static str,
    /// How many tests it has, so that none is lost.
    tests: usize,
    patch: Patch,
}

/// How vdso-time-quanta replaces the original.
enum Patch {
    /// This directory of `PATCHES` replaces quanta, a dependency.
    Dependency(&'static str),
    /// The tests are part of the original. So they are compiled with our sources from this
    /// directory, and the private items that they use.
    Sources {
        directory: &'static str,
        private: &'static str,
    },
}

const PATCHES: &str = "crates/vdso-time-quanta/patch";

/// The directories of `PATCHES`, each with the name and the version of the package that it
/// replaces.
const PATCHED: [(&str, &str, &str); 4] = [
    ("fastant", "fastant", "0.1.11"),
    ("minstant", "minstant", "0.1.7"),
    ("quanta-0.12", "quanta", "0.12.6"),
    ("quanta-0.13", "quanta", "0.13.0"),
];

const QUANTA: Patch = Patch::Sources {
    directory: "crates/vdso-time-quanta/src",
    private: include_str!("clients/quanta.rs"),
};

const QUANTA_0_12: Patch = Patch::Dependency("quanta-0.12");

const FASTANT: Patch = Patch::Sources {
    directory: "crates/vdso-time-quanta/patch/fastant",
    private: include_str!("clients/fastant.rs"),
};

/// How often the tests of a package are run until they pass. Some of governor's fail if a wait
/// takes 0.1 s longer than it should, as on a busy machine.
const TRIES: usize = 3;

const fn client(
    name: &'static str,
    version: &'static str,
    features: &'static str,
    tests: usize,
    patch: Patch,
) -> Client {
    Client {
        name,
        version,
        features,
        tests,
        patch,
    }
}

/// The README of vdso-time-quanta has this table as well, and says which test of quanta is not run.
const CLIENTS: &[Client] = &[
    client("quanta", "0.12.6", "", 11, QUANTA),
    client("quanta", "0.13.0", "", 11, QUANTA),
    client("fastant", "0.1.11", "atomic", 5, FASTANT),
    client("governor", "0.10.4", "", 82, QUANTA_0_12),
    client("metrics-util", "0.20.4", "", 39, QUANTA_0_12),
    client("moka", "0.12.16", "sync,future,quanta", 179, QUANTA_0_12),
];

/// The dependencies of our sources, for the manifest of an original. `ROOT` is this repository.
const DEPENDENCIES: [(&str, &str); 5] = [
    ("vdso-time", "path = 'ROOT'\nfeatures = ['std']"),
    (
        "vdso-time-counter",
        "path = 'ROOT/crates/vdso-time-counter'\nfeatures = ['std']",
    ),
    ("vdso-time-quanta", "path = 'ROOT/crates/vdso-time-quanta'"),
    ("portable-atomic", "version = '1'\nfeatures = ['fallback']"),
    ("web-time", "version = '1'"),
];

pub(crate) fn run(names: &[String]) -> Result<ExitCode> {
    let clients = chosen(names)?;
    let sh = workspace::shell()?;
    let packages = fetch(&sh)?;
    compare_features(&sh, &packages)?;
    for client in clients {
        client.test(&sh, &client.patched_copy(&sh, &packages)?)?;
        println!(
            "{} {}: {} tests passed",
            client.name, client.version, client.tests
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the clients of these names, or all clients if there are no names.
fn chosen(names: &[String]) -> Result<Vec<&'static Client>> {
    for name in names {
        if CLIENTS.iter().any(|client| client.name == name) {
            continue;
        }
        let mut known: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        known.dedup();
        bail!(
            "there is no client `{name}`; the clients are {}",
            known.join(", ")
        );
    }
    let is_chosen = |client: &&Client| names.is_empty() || names.iter().any(|it| it == client.name);
    Ok(CLIENTS.iter().filter(is_chosen).collect())
}

/// Has cargo fetch the packages. Returns what it says of them.
fn fetch(sh: &Shell) -> Result<Vec<Value>> {
    let directory = directory().join("fetch");
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
    let path = directory.join("Cargo.toml");
    sh.write_file(directory.join("src/lib.rs"), "")?;
    sh.write_file(&path, manifest)?;
    let path = path.to_str().context("the path is not UTF-8")?;
    workspace::packages(
        sh,
        &[
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
            "--manifest-path",
            path,
        ],
    )
}

fn package<'a>(packages: &'a [Value], name: &str, version: &str) -> Result<&'a Value> {
    let mut packages = packages.iter();
    packages
        .find(|it| it["name"] == name && it["version"] == version)
        .with_context(|| format!("cargo has not fetched {name} {version}"))
}

/// Fails if a patch lacks a feature: cargo could not resolve a package that asks for it.
fn compare_features(sh: &Shell, packages: &[Value]) -> Result<()> {
    for (directory, name, version) in PATCHED {
        let patch = sh.read_file(
            workspace::root()
                .join(PATCHES)
                .join(directory)
                .join("Cargo.toml"),
        )?;
        let features = package(packages, name, version)?["features"]
            .as_object()
            .context("cargo metadata lists no features")?;
        for feature in features.keys() {
            let is_there = patch.contains(&format!("\n{feature} = ["));
            ensure!(
                is_there,
                "patch/{directory} lacks the feature {feature} of {name} {version}"
            );
        }
    }
    Ok(())
}

fn directory() -> PathBuf {
    workspace::target().join("clients")
}

/// Updates the lock file beside a manifest, so that it names the patch of a package.
fn unlock(sh: &Shell, manifest: &Path, name: &str) -> Result<()> {
    workspace::cargo(sh)
        .args(["update", "--quiet", name, "--manifest-path"])
        .arg(manifest)
        .run()?;
    let lock = sh.read_file(manifest.with_extension("lock"))?;
    ensure!(
        !lock.contains("[[patch.unused]]"),
        "{}: cargo does not use the patch",
        manifest.display()
    );
    Ok(())
}

impl Client {
    /// Copies the package into the target directory, and lets the patch change it.
    fn patched_copy(&self, sh: &Shell, packages: &[Value]) -> Result<PathBuf> {
        let source = package(packages, self.name, self.version)?["manifest_path"].as_str();
        let source =
            Path::new(source.context("cargo metadata has no manifest_path")?).with_file_name("");
        let copy = directory()
            .join("patched")
            .join(format!("{}-{}", self.name, self.version));
        sh.remove_path(&copy)?;
        sh.create_dir(copy.with_file_name(""))?;
        // Keeps the files' times, by which cargo decides what to compile.
        cmd!(sh, "cp --recursive --preserve {source} {copy}")
            .quiet()
            .run()?;
        let path = copy.join("Cargo.toml");
        let mut manifest = sh.read_file(&path)? + "\n[workspace]\n";
        // Only benches use it, and it takes long to compile.
        if let Some((before, rest)) = manifest.split_once("\n[dev-dependencies.criterion]") {
            manifest = before.to_owned() + rest.find("\n[").map_or("", |next| &rest[next..]);
        }
        match &self.patch {
            Patch::Dependency(directory) => {
                let directory = workspace::root().join(PATCHES).join(directory);
                writeln!(
                    manifest,
                    "[patch.crates-io]\nquanta.path = '{}'",
                    directory.display()
                )?;
                sh.write_file(&path, manifest)?;
                unlock(sh, &path, "quanta")?;
            }
            Patch::Sources { directory, private } => {
                let root = workspace::root();
                for (name, value) in DEPENDENCIES {
                    let table = format!("[dependencies.{name}]\n");
                    if !manifest.contains(&table) {
                        writeln!(
                            manifest,
                            "{table}{}",
                            value.replace("ROOT", &root.display().to_string())
                        )?;
                    }
                }
                sh.write_file(path, manifest)?;
                replace_sources(&copy.join("src"), &root.join(directory), private)?;
            }
        }
        Ok(copy)
    }

    /// Compiles and runs the tests until they pass.
    fn test(&self, sh: &Shell, directory: &Path) -> Result<()> {
        step(&format!(
            "testing {}",
            directory.strip_prefix(workspace::target())?.display()
        ));
        for _ in 1..TRIES {
            match self.test_once(sh, directory) {
                Ok(()) => return Ok(()),
                Err(error) => step(&format!("{error:#}\nagain")),
            }
        }
        self.test_once(sh, directory)
    }

    fn test_once(&self, sh: &Shell, directory: &Path) -> Result<()> {
        // The tests of quanta 0.12 share its recent time.
        let arguments: &[&str] = match self.patch {
            Patch::Sources { .. } => &["--", "--test-threads=1"],
            Patch::Dependency(..) => &[],
        };
        let cargo = workspace::cargo(sh).args(["test", "--lib", "--tests", "--no-fail-fast"]);
        let cargo = cargo
            .env("CARGO_TARGET_DIR", self::directory())
            .arg("--manifest-path");
        let cargo = cargo
            .arg(directory.join("Cargo.toml"))
            .args(["--features", self.features]);
        let test = cargo.args(arguments).ignore_status().output()?;
        let output = String::from_utf8([test.stderr, test.stdout].concat())?;
        let is_passed = |line: &&str| line.starts_with("test ") && line.ends_with(" ... ok");
        let passed = output.lines().filter(is_passed).count();
        let name = self.name;
        let tests = self.tests;
        let are_all = test.status.success() && passed == tests;
        ensure!(
            are_all,
            "{output}\n{passed} tests of {name} passed, not {tests}"
        );
        Ok(())
    }
}

/// Compiles the package from our sources and its own tests.
fn replace_sources(directory: &Path, ours: &Path, private: &str) -> Result<()> {
    for ours in workspace::entries(ours)?
        .iter()
        .filter(|path| path.extension() == Some(OsStr::new("rs")))
    {
        let path = directory.join(ours.file_name().unwrap_or_default());
        let published = fs::read_to_string(&path).unwrap_or_default();
        let tests = published
            .find("#[cfg(test)]\nmod tests")
            .map_or("", |at| &published[at..]);
        let private = if path.ends_with("lib.rs") {
            private
        } else {
            ""
        };
        fs::write(
            &path,
            format!("{}\n{private}\n{tests}", fs::read_to_string(ours)?),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS, chosen};

    #[test]
    fn each_name_must_be_a_clients_name() {
        let names = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let clients = chosen(&names)?;
            anyhow::Ok(clients.len())
        };
        assert_eq!(names(&[]).unwrap(), CLIENTS.len());
        assert_eq!(names(&["quanta", "moka"]).unwrap(), 3);
        let error = names(&["quanta", "mocha"]).unwrap_err().to_string();
        assert!(error.starts_with("there is no client `mocha`; "), "{error}");
    }
}
