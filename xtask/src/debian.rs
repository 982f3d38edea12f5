//! Debian packages of any suite and architecture, unpacked into a folder: nothing is installed.
//!
//! apt is given a root of its own (configuration, sources, lists, an empty list of what is
//! installed), so no rights, no locks and none of the system's foreign architectures are needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::process::{output, stdout, step};
use crate::sources;

/// A package by its Debian names, e.g. `libstd-rust-web-dev`, `armhf`, `bookworm`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) architecture: String,
    pub(crate) suite: &'static str,
}

/// A private apt root whose package lists have been fetched.
pub(crate) struct Archive {
    folder: PathBuf,
}

/// What of the machine's own settings is wanted: how to reach the mirrors, and whether their
/// lists may be old (they are where a snapshot serves as mirror).
const INHERITED: &[&str] = &["Acquire::http", "Acquire::Check-", "Acquire::Retries"];

/// The machine's architecture, as Debian names it. Fails where there is no apt.
pub(crate) fn native_architecture() -> Result<String, String> {
    let found = output(Command::new("apt-get").arg("--version")).is_ok_and(|o| o.status.success());
    if !found {
        return Err("this needs a Debian or Ubuntu machine with apt-get".into());
    }
    Ok(stdout(Command::new("dpkg").arg("--print-architecture"))?.trim().to_string())
}

impl Archive {
    /// Sets up apt's root in `folder` and reads the lists of what `packages` names.
    pub(crate) fn open(folder: &Path, native: &str, packages: &[Package]) -> Result<Self, String> {
        let mut suites: Vec<&str> = packages.iter().map(|package| package.suite).collect();
        suites.sort_unstable();
        suites.dedup();
        let mut architectures = vec![native];
        architectures.extend(packages.iter().map(|package| package.architecture.as_str()));
        architectures.sort_unstable();
        architectures.dedup();

        let archive = Self { folder: folder.to_path_buf() };
        for part in ["lists/partial", "cache/archives/partial"] {
            cache::create(&folder.join(part))?;
        }
        cache::write(&folder.join("status"), "")?;
        cache::write(&folder.join("sources.list"), &source_lines(&suites)?)?;
        cache::write(&folder.join("apt.conf"), &configuration(folder, native, &architectures)?)?;
        step(&format!("reading the package lists of {} for {}", suites.join(", "), architectures.join(", ")));
        stdout(archive.apt_get().arg("update"))?;
        Ok(archive)
    }

    /// Downloads the packages and unpacks all of them into the folder `into`.
    pub(crate) fn unpack(&self, packages: &[Package], into: &Path) -> Result<(), String> {
        let downloads = self.folder.join("downloads");
        cache::create(&downloads)?;
        step(&format!("downloading {} packages", packages.len()));
        stdout(
            self.apt_get()
                .arg("download")
                .args(packages.iter().map(Package::request))
                .current_dir(&downloads),
        )?;
        for file in cache::entries(&downloads)? {
            step(&format!("unpacking {}", short_name(&file)));
            unpack_file(&file, into)?;
        }
        cache::remove(&downloads)
    }

    /// The same with all packages that they need, but for some by name.
    pub(crate) fn unpack_whole(
        &self,
        packages: &[Package],
        except: &[&str],
        into: &Path,
    ) -> Result<(), String> {
        step("downloading what is needed");
        stdout(
            self.apt_get()
                .args(["--yes", "--no-install-recommends", "--download-only", "install"])
                .args(packages.iter().map(Package::request)),
        )?;
        let mut files = cache::entries(&self.folder.join("cache/archives"))?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "deb"));
        step(&format!("unpacking {} packages", files.len()));
        for file in files {
            if !except.iter().any(|name| short_name(&file).starts_with(&format!("{name} "))) {
                unpack_file(&file, into)?;
            }
        }
        Ok(())
    }

    /// The first package that this one depends on whose name begins so.
    pub(crate) fn dependency(&self, package: &Package, prefixes: &[&str]) -> Result<Option<Package>, String> {
        let mut command = Command::new("apt-cache");
        command.env("APT_CONFIG", self.folder.join("apt.conf")).env("LC_ALL", "C");
        let record = stdout(command.args(["show", "--no-all-versions", &package.request()]))?;
        let names = record.lines().filter_map(|line| line.strip_prefix("Depends: ")).flat_map(|line| {
            let words = line.split([',', '|']).filter_map(|choice| choice.split_whitespace().next());
            words.collect::<Vec<_>>()
        });
        let name = names.into_iter().find(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        Ok(name.map(|name| Package { name: name.into(), ..package.clone() }))
    }

    fn apt_get(&self) -> Command {
        let mut command = Command::new("apt-get");
        command.env("APT_CONFIG", self.folder.join("apt.conf")).env("LC_ALL", "C").args([
            "-q",
            "-o",
            "APT::Update::Error-Mode=any",
        ]);
        command
    }
}

impl Package {
    /// The newest version in the suite: versions move, so none is named.
    fn request(&self) -> String {
        format!("{}:{}/{}", self.name, self.architecture, self.suite)
    }
}

fn unpack_file(file: &Path, into: &Path) -> Result<(), String> {
    stdout(Command::new("dpkg").arg("-x").arg(file).arg(into)).map(drop)
}

/// `name (architecture)` of a file called `name_version_architecture.deb`.
fn short_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.split('_').next().unwrap_or_default();
    let architecture = stem.rsplit('_').next().unwrap_or_default();
    format!("{name} ({architecture})")
}

fn source_lines(suites: &[&str]) -> Result<String, String> {
    let mirror = sources::mirror()?;
    let options =
        mirror.keyring.map_or_else(String::new, |keyring| format!("[signed-by={}] ", keyring.display()));
    let line = |suite: &&str| format!("deb {options}{} {suite} main\n", mirror.uri);
    Ok(suites.iter().map(line).collect())
}

fn configuration(folder: &Path, native: &str, architectures: &[&str]) -> Result<String, String> {
    let root = folder.display();
    let dump = stdout(Command::new("apt-config").arg("dump"))?;
    let inherited: Vec<&str> =
        dump.lines().filter(|line| INHERITED.iter().any(|prefix| line.starts_with(prefix))).collect();
    let inherited = inherited.join("\n");
    let listed = architectures.join("\"; \"");
    // Passwords for mirrors and trusted keys stay where they are; the machine's hooks, pins and
    // other sources are left out. Root may read its own folder, which apt's `_apt` user may not.
    Ok(format!(
        r#"Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "{root}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "{root}";
Dir::State::lists "{root}/lists";
Dir::State::status "{root}/status";
Dir::Cache "{root}/cache";
APT::Architecture "{native}";
APT::Architectures {{ "{listed}"; }};
APT::Sandbox::User "root";
Acquire::Languages "none";
{inherited}
"#
    ))
}
