//! Debian packages of any suite and architecture, unpacked into a folder: nothing is installed.
//!
//! apt is given a root of its own (configuration, sources, lists, an empty list of what is
//! installed), so no rights, no locks and none of the system's foreign architectures are needed.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::process::{output, shown, stdout, step};
use crate::sources::{self, MIRROR_VARIABLE, Mirror};

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
    mirror: Mirror,
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

        let archive = Self { folder: folder.to_path_buf(), mirror: sources::mirror()? };
        for part in ["lists/partial", "cache/archives/partial"] {
            cache::create(&folder.join(part))?;
        }
        cache::write(&folder.join("status"), "")?;
        cache::write(&folder.join("sources.list"), &source_lines(&archive.mirror, &suites))?;
        cache::write(&folder.join("apt.conf"), &configuration(folder, native, &architectures)?)?;
        let (suites, architectures) = (suites.join(", "), architectures.join(", "));
        step(&format!(
            "reading the package lists of {suites} for {architectures} from {}",
            archive.mirror.uri
        ));
        stdout(archive.apt_get().arg("update")).map_err(|error| archive.unreachable(&error))?;
        Ok(archive)
    }

    /// Downloads the packages and unpacks all of them into the folder `into`.
    pub(crate) fn unpack(&self, packages: &[Package], into: &Path) -> Result<(), String> {
        let downloads = self.folder.join("downloads");
        cache::create(&downloads)?;
        let words = packages.iter().map(Package::request);
        self.download(["download".into()].into_iter().chain(words), &downloads)?;
        for file in cache::entries(&downloads)? {
            step(&format!("unpacking {}", short_name(&file)));
            unpack_file(&file, into)?;
        }
        cache::remove(&downloads)
    }

    /// Runs apt-get with these words, in a folder. Says before how much it fetches, and meanwhile how
    /// far it is.
    fn download(&self, words: impl Iterator<Item = String>, folder: &Path) -> Result<(), String> {
        let words: Vec<String> = words.collect();
        let uris = stdout(self.apt_get().arg("--print-uris").args(&words).current_dir(folder))?;
        let (count, bytes) = sizes(&uris);
        let megabytes = bytes.div_ceil(1_000_000);
        step(&format!("downloading {megabytes} MB (packages: {count}) from {}", self.mirror.name()));
        let mut command = self.apt_get();
        if io::stderr().is_terminal() {
            // A line that shows how far it is, in place of one for each package.
            command.args(["-o", "quiet=0"]);
        }
        shown(command.args(&words).current_dir(folder)).map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &str) -> String {
        let mirror = self.mirror.name();
        format!("{error}\nThe mirror is {mirror}; {MIRROR_VARIABLE}=URI names another one.")
    }

    /// The same with all packages that they need, but for some by name.
    pub(crate) fn unpack_whole(
        &self,
        packages: &[Package],
        except: &[&str],
        into: &Path,
    ) -> Result<(), String> {
        let options = ["--yes", "--no-install-recommends", "--download-only", "install"];
        let words = options.map(String::from).into_iter().chain(packages.iter().map(Package::request));
        self.download(words, &self.folder)?;
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

/// How many files apt would fetch, and their bytes: `'URI' NAME SIZE HASH` of each.
fn sizes(uris: &str) -> (usize, u64) {
    let size = |line: &str| line.split_once("' ")?.1.split(' ').nth(1)?.parse::<u64>().ok();
    let sizes: Vec<u64> = uris.lines().filter(|line| line.starts_with('\'')).filter_map(size).collect();
    (sizes.len(), sizes.iter().sum())
}

fn source_lines(mirror: &Mirror, suites: &[&str]) -> String {
    let keyring = mirror.keyring.as_ref();
    let options = keyring.map_or_else(String::new, |keyring| format!("[signed-by={}] ", keyring.display()));
    let line = |suite: &&str| format!("deb {options}{} {suite} main\n", mirror.uri);
    suites.iter().map(line).collect()
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

#[cfg(test)]
mod tests {
    use super::sizes;

    #[test]
    fn apt_says_how_much_it_would_fetch() {
        let said = "Reading package lists...\nNeed to get 9 B of archives.\n\
                    'http://a.example/pool/a_1_amd64.deb' a_1_amd64.deb 1200000 SHA256:00\n\
                    'http://a.example/pool/b%2b_2_all.deb' b+_2_all.deb 34 SHA256:11\n";
        assert_eq!(sizes(said), (2, 1_200_034));
        assert_eq!(sizes(""), (0, 0));
    }
}
