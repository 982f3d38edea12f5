//! Debian packages of any suite and architecture, unpacked into a folder. Nothing is installed.
//!
//! apt gets a root of its own (configuration, sources, package lists, an empty list of installed
//! packages), so this needs no privileges, no locks and no foreign architectures of the system.

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

/// The URI of a mirror. apt's options for it may come before: `[trusted=yes] file:/mirror`.
const MIRROR_VARIABLE: &str = "VDSO_TIME_DEBIAN_MIRROR";

/// The pauses before a mirror that fails is asked again, in seconds.
const PAUSES: &[u64] = &[3, 15];

/// The mirror does not give what it should. A later try can succeed without any change here.
#[derive(Debug, thiserror::Error)]
#[error("Debian's mirror fails: {0}; try later, or name another: {variable}=URI", variable = MIRROR_VARIABLE)]
pub struct NotFetched(String);

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A source of any of these suites names a mirror, because a mirror has all of them.
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

/// Settings of the machine that apt keeps: how to reach a mirror, and whether its lists may be old.
const INHERITED: &[&str] = &["Acquire::http", "Acquire::Check-", "Acquire::Retries"];

/// A package by its Debian names, e.g. `libstd-rust-web-dev`, `armhf`, `bookworm`.
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

    /// Returns the newest version in the suite, in apt's syntax.
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
    folder: PathBuf,
    downloads: PathBuf,
    /// How often a mirror that fails is asked again.
    pauses: &'static [u64],
    /// Why the index is an older one.
    older: Option<String>,
    _lock: fs::File,
}

impl Archive {
    /// Fetches the index that has the packages. Downloads go to the folder `downloads`.
    ///
    /// If the mirror fails, apt keeps an older index, whose signature it has verified.
    pub(crate) fn open(downloads: &Path, packages: &[Package]) -> Result<Self> {
        let sh = Shell::new()?;
        let native = native_architecture(&sh)?;
        let mut suites: Vec<&str> = packages.iter().map(|package| package.suite).collect();
        // Backports depend on packages of their release.
        suites.extend(
            packages
                .iter()
                .filter_map(|package| package.suite.strip_suffix("-backports")),
        );
        let mut architectures: Vec<&str> = packages
            .iter()
            .map(|package| &*package.architecture)
            .collect();
        architectures.push(&native);
        for names in [&mut suites, &mut architectures] {
            names.sort_unstable();
            names.dedup();
        }
        let name = [&["apt"], &suites[..], &architectures].concat().join("-");
        let folder = cache::folder()?.join(name);
        fs::create_dir_all(folder.join("lists/partial"))?;
        fs::create_dir_all(downloads.join("archives/partial"))?;
        let lock = cache::lock(&folder.join("lock"))?;
        let mirror = mirror(&sh)?;
        fs::write(folder.join("status"), "")?;
        let source = |suite: &&str| format!("deb {mirror} {suite} main\n");
        fs::write(
            folder.join("sources.list"),
            suites.iter().map(source).collect::<String>(),
        )?;
        let configuration = configuration(&sh, [&folder, downloads], &native, &architectures)?;
        fs::write(folder.join("apt.conf"), configuration)?;

        // A mirror of this machine does not change while we wait.
        let pauses = if mirror.contains("file:") {
            &[]
        } else {
            PAUSES
        };
        let downloads = downloads.to_path_buf();
        let mut archive = Self {
            sh,
            folder,
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
            step(&format!("the mirror fails: {fault}"));
            step("looking for an older index in the cache");
        }
        Ok(archive)
    }

    /// Downloads packages, alone or with all their dependencies, and unpacks them into the folder
    /// `into`.
    pub(crate) fn unpack(
        &self,
        packages: &[Package],
        with_dependencies: bool,
        into: &Path,
    ) -> Result<()> {
        let install: &[&str] = &[
            "--yes",
            "--no-install-recommends",
            "--download-only",
            "install",
        ];
        let action = if with_dependencies {
            install
        } else {
            &["download"]
        };
        let mut words: Vec<String> = action.iter().map(ToString::to_string).collect();
        words.extend(
            packages
                .first()
                .map(|package| format!("--target-release={}", package.suite)),
        );
        words.extend(packages.iter().map(Package::request));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // A package that the index does not have is no fault of the mirror.
        let uris = self.ask(self.apt_get().args(&words).arg("--print-uris"))?;
        let files = files(&uris);
        let megabytes = files
            .iter()
            .map(|(_, size)| size)
            .sum::<u64>()
            .div_ceil(1_000_000);
        step(&format!(
            "downloading {megabytes} MB; packages: {}",
            files.len()
        ));
        // `install` would print that it installs them.
        let words: Vec<&str> = ["download"]
            .into_iter()
            .chain(files.iter().map(|(name, _)| &**name))
            .collect();
        self.fetch(&words)?.map_err(NotFetched)?;

        let has_libc = packages.iter().any(|package| package.name == "libc6");
        let mut files = cache::entries(&self.downloads.join("archives"))?;
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            // Unless it is asked for by name, the machine's own C library is used, because it
            // belongs to the machine's loader.
            name.ends_with(".deb") && (has_libc || !name.starts_with("libc6_"))
        });
        step(&format!("unpacking {} packages", files.len()));
        let sh = &self.sh;
        files
            .iter()
            .try_for_each(|file| Ok(cmd!(sh, "dpkg -x {file} {into}").quiet().run()?))
    }

    /// Returns the first dependency of the package whose name has one of these prefixes.
    pub(crate) fn dependency(
        &self,
        package: &Package,
        prefixes: &[&str],
    ) -> Result<Option<Package>> {
        let (sh, request) = (&self.sh, package.request());
        let show = cmd!(sh, "apt-cache show --no-all-versions {request}");
        let record = self.ask(self.configured(show))?;
        let lines = record
            .lines()
            .filter_map(|line| line.strip_prefix("Depends: "));
        let name = lines
            .flat_map(|line| line.split([',', '|']))
            .filter_map(|dependency| dependency.split_whitespace().next())
            .find(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        Ok(name.map(|name| Package {
            name: name.into(),
            ..package.clone()
        }))
    }

    /// Runs apt-get, again after each pause while the mirror fails. The inner error is apt's.
    fn fetch(&self, words: &[&str]) -> Result<Result<(), String>> {
        let mut pauses = self.pauses.iter();
        loop {
            let mut apt_get = Command::from(self.apt_get().args(words));
            // apt prints the sizes of downloads. Standard output is for results.
            let out = if words == ["update"] {
                Stdio::null()
            } else {
                io::stderr().into()
            };
            let apt_get = apt_get
                .current_dir(self.downloads.join("archives"))
                .stdout(out);
            let output = apt_get.stderr(Stdio::piped()).spawn()?.wait_with_output()?;
            if output.status.success() {
                return Ok(Ok(()));
            }
            let fault = first_error(&output.stderr);
            let Some(pause) = pauses.next() else {
                return Ok(Err(fault));
            };
            step(&format!("the mirror fails; asking it again in {pause} s"));
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
            .env("APT_CONFIG", self.folder.join("apt.conf"))
            .env("LC_ALL", "C")
            .quiet()
    }
}

/// apt's first error, on one line and without the address of the server.
fn first_error(errors: &[u8]) -> String {
    let errors = String::from_utf8_lossy(errors);
    let error = errors
        .lines()
        .find_map(|line| line.strip_prefix("E: "))
        .unwrap_or("apt-get failed");
    let error = error.split(" [IP: ").next().unwrap_or(error);
    error.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Fetches packages and unpacks them into a folder.
pub(crate) fn unpack(packages: &[Package], with_dependencies: bool, into: &Path) -> Result<()> {
    let downloads = into.join("downloads");
    Archive::open(&downloads, packages)?.unpack(packages, with_dependencies, into)?;
    Ok(fs::remove_dir_all(downloads)?)
}

/// Returns Debian's mirror: the one that the environment names, else that of apt's sources.
fn mirror(sh: &Shell) -> Result<String> {
    let named = env::var(MIRROR_VARIABLE).ok().filter(|uri| !uri.is_empty());
    let uri = match named {
        Some(uri) if uri.starts_with('[') => return Ok(uri),
        Some(uri) => uri,
        None => {
            let uris = cmd!(sh, "apt-get update --print-uris").quiet().read()?;
            debian_uri(&uris).with_context(|| {
                format!(
                    "apt's sources name no Debian mirror: set {MIRROR_VARIABLE}=URI and install \
                     debian-archive-keyring"
                )
            })?
        }
    };
    let has_keyring = Path::new(KEYRING).is_file();
    Ok(if has_keyring {
        format!("[signed-by={KEYRING}] {uri}")
    } else {
        uri
    })
}

/// Returns the packages that apt would fetch, in its syntax, and the sizes of their files. Each
/// line is `'URI' NAME_VERSION_ARCHITECTURE.deb SIZE HASH`.
fn files(uris: &str) -> Vec<(String, u64)> {
    let file = |line: &str| {
        let mut words = line.strip_prefix('\'')?.split(' ').skip(1);
        let (file, size) = (words.next()?, words.next()?.parse().ok()?);
        let (name, rest) = file.strip_suffix(".deb")?.split_once('_')?;
        let (version, architecture) = rest.rsplit_once('_')?;
        Some((
            format!("{name}:{architecture}={}", version.replace("%3a", ":")),
            size,
        ))
    };
    uris.lines().filter_map(file).collect()
}

/// Returns the first Debian mirror among the files that apt would fetch:
/// `'URI/dists/SUITE/main/binary-...`.
fn debian_uri(uris: &str) -> Option<String> {
    uris.lines().find_map(|line| {
        let (uri, rest) = line.strip_prefix('\'')?.split_once("/dists/")?;
        let (suite, _) = rest.split_once("/main/binary-")?;
        (SUITES.contains(&suite) && !uri.starts_with("cdrom:")).then(|| uri.to_owned())
    })
}

fn configuration(
    sh: &Shell,
    [folder, downloads]: [&Path; 2],
    native: &str,
    architectures: &[&str],
) -> Result<String> {
    let (root, downloads) = (folder.display(), downloads.display());
    let dump = cmd!(sh, "apt-config dump").quiet().read()?;
    let inherited: Vec<&str> = dump
        .lines()
        .filter(|line| INHERITED.iter().any(|prefix| line.starts_with(prefix)))
        .collect();
    let (inherited, listed) = (inherited.join("\n"), architectures.join("\"; \""));
    // Passwords for mirrors and trusted keys stay where they are. The machine's hooks, pins and
    // other sources do not apply. apt's user `_apt` may not read our folder, so apt keeps root's
    // rights.
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
