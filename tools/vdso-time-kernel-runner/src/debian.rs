//! Debian packages of any suite and architecture, unpacked into a directory. Nothing is installed.
//!
//! apt gets a root of its own, with a configuration, sources, package lists and an empty list of
//! installed packages. So apt needs neither privileges nor the system's locks, and no foreign
//! architecture needs to be added to the system.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use fs_err as fs;
use xshell::{Cmd, Shell, cmd};

use crate::{cache, step};

/// The variable with the URI of a mirror. apt's options for the mirror may precede the URI:
/// `[trusted=yes] file:/mirror`.
const MIRROR_VARIABLE: &str = "VDSO_TIME_DEBIAN_MIRROR";

/// How many seconds to wait before each further attempt, if the mirror fails.
const PAUSES: &[u64] = &[3, 15];

/// The mirror did not deliver what it should. A later attempt can succeed without any change here.
#[derive(Debug, thiserror::Error)]
#[error("Debian's mirror failed: {0}; try again later, or name another mirror with {variable}=URI", variable = MIRROR_VARIABLE)]
pub(crate) struct NotFetched(String);

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The suites that identify a Debian mirror among apt's sources. A source with any of these suites
/// names a usable mirror, because every Debian mirror has all of them.
const SUITES: &[&str] = &[
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "sid",
    "oldstable",
    "stable",
    "testing",
    "unstable",
];

/// What apt's errors contain if this machine is at fault and not the mirror. apt's first error can
/// still blame the mirror: with a full disk it is that the mirror "does not have a Release file".
const LOCAL_FAULTS: &[&str] = &[
    "(28: No space left on device)",
    "enough free space",
    "(13: Permission denied)",
    "(30: Read-only file system)",
];

/// The prefixes of the apt settings that the private root takes over from this machine. These
/// settings say how to reach a mirror, and whether the mirror's lists may be old.
const INHERITED: &[&str] = &["Acquire::http", "Acquire::Check-", "Acquire::Retries"];

/// A package: its name, its architecture and its suite, as Debian names them, e.g.
/// `libstd-rust-web-dev`, `armhf`, `bookworm`.
#[derive(Clone, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) architecture: String,
    pub(crate) suite: &'static str,
}

impl Package {
    pub(crate) fn new(name: &str, architecture: &str, suite: &'static str) -> Self {
        Self {
            name: name.into(),
            architecture: architecture.into(),
            suite,
        }
    }

    /// Returns the request for the newest version in the suite, in apt's syntax.
    fn request(&self) -> String {
        format!("{}:{}/{}", self.name, self.architecture, self.suite)
    }
}

/// Returns the machine's architecture, as Debian names it.
pub(crate) fn native_architecture(sh: &Shell) -> Result<String> {
    let architecture = cmd!(sh, "dpkg --print-architecture").quiet().read();
    architecture.context("this command needs Debian or Ubuntu, with dpkg and apt-get")
}

/// A private apt root, in the cache, with the index of some suites and architectures.
pub(crate) struct Archive {
    sh: Shell,
    directory: PathBuf,
    downloads: PathBuf,
    /// How many seconds to wait before each further attempt, if the mirror fails.
    pauses: &'static [u64],
    /// apt's error, if the mirror failed. The index is then an older one from the cache.
    older: Option<String>,
    _lock: fs::File,
}

impl Archive {
    /// Fetches the index that lists the packages. Downloads go to the directory `downloads`.
    ///
    /// If the mirror fails, apt keeps an older index, whose signature it has verified.
    pub(crate) fn open(downloads: &Path, packages: &[Package]) -> Result<Self> {
        let sh = Shell::new()?;
        let native = native_architecture(&sh)?;
        let mut suites = Vec::new();
        let mut architectures = vec![&*native];
        for package in packages {
            suites.push(package.suite);
            architectures.push(&package.architecture);
            // Backports depend on packages of their release.
            suites.extend(package.suite.strip_suffix("-backports"));
        }
        for names in [&mut suites, &mut architectures] {
            names.sort_unstable();
            names.dedup();
        }
        let mut words = vec!["apt"];
        words.extend(&suites);
        words.extend(&architectures);
        let directory = cache::directory()?.join(words.join("-"));
        fs::create_dir_all(directory.join("lists/partial"))?;
        fs::create_dir_all(downloads.join("archives/partial"))?;
        let lock = cache::lock(&directory.join("lock"))?;
        let mirror = mirror(&sh)?;
        let mut sources = Vec::new();
        for suite in &suites {
            sources.push(format!("deb {mirror} {suite} main\n"));
        }
        fs::write(directory.join("status"), "")?;
        fs::write(directory.join("sources.list"), sources.concat())?;
        let configuration = configuration(&sh, &directory, downloads, &native, &architectures)?;
        fs::write(directory.join("apt.conf"), configuration)?;

        // A mirror on this machine does not change while we wait, so a failed attempt is not
        // repeated.
        let pauses = if mirror.contains("file:") {
            &[]
        } else {
            PAUSES
        };
        let downloads = downloads.to_path_buf();
        let mut archive = Self {
            sh,
            directory,
            downloads,
            pauses,
            older: None,
            _lock: lock,
        };
        step(&format!(
            "reading the package lists of {} for {}",
            suites.join(", "),
            architectures.join(", ")
        ));
        archive.older = archive.fetch(&["update"])?.err();
        if let Some(fault) = &archive.older {
            step(&format!("the mirror failed: {fault}"));
            step("looking for an older index in the cache");
        }
        Ok(archive)
    }

    /// Downloads packages, alone or with all their dependencies, and unpacks them into the
    /// directory `into`.
    pub(crate) fn unpack(
        &self,
        packages: &[Package],
        with_dependencies: bool,
        into: &Path,
    ) -> Result<()> {
        let requests = packages.iter().map(Package::request);
        let mut apt_get = self.apt_get();
        if with_dependencies {
            apt_get = apt_get.args(["--yes", "--no-install-recommends", "--download-only"]);
            apt_get = apt_get.arg("install");
        } else {
            apt_get = apt_get.arg("download");
        }
        if let Some(package) = packages.first() {
            apt_get = apt_get.arg(format!("--target-release={}", package.suite));
        }
        // If an index that was fetched just now does not have a package, that is not the mirror's
        // fault, so the error is not `NotFetched`.
        let question = apt_get.args(requests).arg("--print-uris");
        let uris = self.ask(question)?;
        let files = files(&uris);
        let mut bytes = 0;
        // The command is `download`, because `install` would print that it installs the packages.
        let mut words = vec!["download"];
        for (name, size) in &files {
            bytes += size;
            words.push(name);
        }
        step(&format!(
            "downloading {} MB; packages: {}",
            bytes.div_ceil(1_000_000),
            files.len()
        ));
        self.fetch(&words)?.map_err(NotFetched)?;

        // If `libc6` is not requested but is only a dependency, it is left out: the unpacked
        // programs then start with this machine's loader, which needs this machine's own C library.
        let has_libc = packages.iter().any(|package| package.name == "libc6");
        let archives = self.downloads.join("archives");
        let mut files = cache::entries(&archives)?;
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default();
            let name = name.to_string_lossy();
            name.ends_with(".deb") && (has_libc || !name.starts_with("libc6_"))
        });
        step(&format!("unpacking {} packages", files.len()));
        let sh = &self.sh;
        for file in files {
            cmd!(sh, "dpkg -x {file} {into}").quiet().run()?;
        }
        Ok(())
    }

    /// Returns the first dependency of the package whose name has one of these prefixes.
    pub(crate) fn dependency(
        &self,
        package: &Package,
        prefixes: &[&str],
    ) -> Result<Option<Package>> {
        let sh = &self.sh;
        let request = package.request();
        let show = cmd!(sh, "apt-cache show --no-all-versions {request}");
        let record = self.ask(self.configured(show))?;
        let has_prefix = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        for line in record.lines() {
            let Some(dependencies) = line.strip_prefix("Depends: ") else {
                continue;
            };
            for dependency in dependencies.split([',', '|']) {
                let mut words = dependency.split_whitespace();
                let name = words.next().unwrap_or_default();
                if has_prefix(name) {
                    let mut found = package.clone();
                    found.name = name.into();
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// Runs apt-get. If the mirror fails, waits and tries again, once for each pause. If all
    /// attempts fail, the inner result is apt's error. A fault of this machine is an outer error.
    fn fetch(&self, words: &[&str]) -> Result<Result<(), String>> {
        let mut pauses = self.pauses.iter();
        loop {
            let apt_get = self.apt_get().args(words);
            let mut apt_get = Command::from(apt_get);
            // apt prints the sizes of downloads. Standard output is for results.
            let out = if words == ["update"] {
                Stdio::null()
            } else {
                io::stderr().into()
            };
            apt_get.current_dir(self.downloads.join("archives"));
            apt_get.stdout(out);
            apt_get.stderr(Stdio::piped());
            let output = apt_get.spawn().context("cannot start apt-get")?;
            let output = output.wait_with_output()?;
            if output.status.success() {
                return Ok(Ok(()));
            }
            if let Some(fault) = local_fault(&output.stderr) {
                bail!("apt-get failed on this machine: {fault}");
            }
            let fault = first_error(&output.stderr);
            let Some(pause) = pauses.next() else {
                return Ok(Err(fault));
            };
            step(&format!("the mirror failed; trying again in {pause} s"));
            thread::sleep(Duration::from_secs(*pause));
        }
    }

    /// Returns what apt finds in the index.
    fn ask(&self, question: Cmd<'_>) -> Result<String> {
        let output = question.ignore_status().output()?;
        if output.status.success() {
            return Ok(String::from_utf8(output.stdout)?);
        }
        match &self.older {
            Some(fault) => Err(NotFetched(fault.clone()).into()),
            None => bail!("{}", first_error(&output.stderr)),
        }
    }

    fn apt_get(&self) -> Cmd<'_> {
        let sh = &self.sh;
        self.configured(cmd!(sh, "apt-get -q -o APT::Update::Error-Mode=any"))
    }

    fn configured<'a>(&self, command: Cmd<'a>) -> Cmd<'a> {
        command
            .env("APT_CONFIG", self.directory.join("apt.conf"))
            .env("LC_ALL", "C")
            .quiet()
    }
}

/// Returns the line in which apt names a fault of this machine, if there is one.
fn local_fault(errors: &[u8]) -> Option<String> {
    let errors = String::from_utf8_lossy(errors);
    let is_local = |line: &&str| LOCAL_FAULTS.iter().any(|words| line.contains(words));
    let line = errors.lines().find(is_local)?;
    // The line begins with `E: `, or with `W: ` on a read-only file system.
    let (_, fault) = line.split_once(": ")?;
    Some(fault.to_owned())
}

/// Returns apt's first error, on one line and without the address of the server.
fn first_error(errors: &[u8]) -> String {
    let errors = String::from_utf8_lossy(errors);
    let mut lines = errors.lines();
    let error = lines.find_map(|line| line.strip_prefix("E: "));
    let error = error.unwrap_or("apt-get failed");
    let error = error.split(" [IP: ").next().unwrap_or(error);
    let words: Vec<&str> = error.split_whitespace().collect();
    words.join(" ")
}

/// Fetches packages and unpacks them into a directory.
pub(crate) fn unpack(packages: &[Package], with_dependencies: bool, into: &Path) -> Result<()> {
    let downloads = into.join("downloads");
    let archive = Archive::open(&downloads, packages)?;
    archive.unpack(packages, with_dependencies, into)?;
    drop(archive);
    fs::remove_dir_all(downloads)?;
    Ok(())
}

/// Returns Debian's mirror: the one that the environment names or, if it names none, the first one
/// in apt's sources.
fn mirror(sh: &Shell) -> Result<String> {
    let mut uri = env::var(MIRROR_VARIABLE).unwrap_or_default();
    if uri.starts_with('[') {
        return Ok(uri);
    }
    if uri.is_empty() {
        let uris = cmd!(sh, "apt-get update --print-uris").quiet().read()?;
        uri = debian_uri(&uris).with_context(|| {
            format!(
                "apt's sources name no Debian mirror: set {MIRROR_VARIABLE}=URI and install \
                 debian-archive-keyring"
            )
        })?;
    }
    if Path::new(KEYRING).is_file() {
        return Ok(format!("[signed-by={KEYRING}] {uri}"));
    }
    Ok(uri)
}

/// Returns the packages that apt would fetch, in its syntax, and the sizes of their files. Each
/// line is `'URI' NAME_VERSION_ARCHITECTURE.deb SIZE HASH`.
fn files(uris: &str) -> Vec<(String, u64)> {
    uris.lines().filter_map(file).collect()
}

fn file(line: &str) -> Option<(String, u64)> {
    let mut words = line.strip_prefix('\'')?.split(' ').skip(1);
    let file = words.next()?.strip_suffix(".deb")?;
    let size = words.next()?.parse().ok()?;
    let (name, rest) = file.split_once('_')?;
    let (version, architecture) = rest.rsplit_once('_')?;
    let version = version.replace("%3a", ":");
    Some((format!("{name}:{architecture}={version}"), size))
}

/// Returns the first Debian mirror among the files that apt would fetch:
/// `'URI/dists/SUITE/main/binary-...`.
fn debian_uri(uris: &str) -> Option<String> {
    for line in uris.lines() {
        let Some((suite, uri)) = suite_and_uri(line) else {
            continue;
        };
        if SUITES.contains(&suite) && !uri.starts_with("cdrom:") {
            return Some(uri.to_owned());
        }
    }
    None
}

fn suite_and_uri(line: &str) -> Option<(&str, &str)> {
    let (uri, rest) = line.strip_prefix('\'')?.split_once("/dists/")?;
    let (suite, _) = rest.split_once("/main/binary-")?;
    Some((suite, uri))
}

fn configuration(
    sh: &Shell,
    directory: &Path,
    downloads: &Path,
    native: &str,
    architectures: &[&str],
) -> Result<String> {
    let root = directory.display();
    let downloads = downloads.display();
    let listed = architectures.join("\"; \"");
    let dump = cmd!(sh, "apt-config dump").quiet().read()?;
    let is_inherited = |line: &&str| INHERITED.iter().any(|prefix| line.starts_with(prefix));
    let inherited: Vec<&str> = dump.lines().filter(is_inherited).collect();
    let inherited = inherited.join("\n");
    // apt still uses the machine's trusted keys and its passwords for mirrors, because this
    // configuration does not change their paths. The machine's hooks, pins and other sources do not
    // apply. apt's user `_apt` cannot always read our directory, so apt does not switch to this
    // user.
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
Dir::Cache "{downloads}";
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
    use super::files;

    #[test]
    fn the_packages_and_sizes_are_those_that_apt_prints() {
        let uris = "Reading package lists...
'http://mirror/pool/a_1%3a10_amd64.deb' a_1%3a10_amd64.deb 62800000 SHA256:ab
'http://mirror/pool/b_2_all.deb' b_2_all.deb 40 SHA256:cd
";
        assert_eq!(
            files(uris),
            [("a:amd64=1:10".into(), 62_800_000), ("b:all=2".into(), 40)]
        );
    }
}
