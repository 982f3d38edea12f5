//! Debian packages of any suite and architecture, unpacked into a folder. Nothing is installed.
//!
//! apt gets a root of its own (configuration, sources, package lists, an empty list of installed
//! packages), so this needs no privileges, no locks and no foreign architectures of the system.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use xshell::{Cmd, Shell, cmd};

use crate::{cache, step};

pub(crate) const MIRROR_VARIABLE: &str = "VDSO_TIME_DEBIAN_MIRROR";

const HINT: &str = "cannot fetch Debian's packages; VDSO_TIME_DEBIAN_MIRROR=URI names another mirror";

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A source of any of these suites names a mirror, because a mirror has all of them.
const SUITES: &[&str] =
    &["bullseye", "bookworm", "trixie", "forky", "sid", "oldstable", "stable", "testing", "unstable"];

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
        Self { name: name.into(), architecture: architecture.into(), suite }
    }

    /// The newest version in the suite, in apt's syntax.
    fn request(&self) -> String {
        format!("{}:{}/{}", self.name, self.architecture, self.suite)
    }
}

/// The machine's architecture, as Debian names it.
pub(crate) fn native_architecture(sh: &Shell) -> Result<String> {
    let architecture = cmd!(sh, "dpkg --print-architecture").quiet().read();
    architecture.context("this command needs Debian or Ubuntu, with dpkg and apt-get")
}

/// A private apt root with package lists.
pub(crate) struct Archive {
    sh: Shell,
    folder: PathBuf,
}

impl Archive {
    /// Creates apt's root in `folder`, and fetches the lists that have the packages.
    pub(crate) fn open(folder: &Path, packages: &[Package]) -> Result<Self> {
        let sh = Shell::new()?;
        let native = native_architecture(&sh)?;
        let mut suites: Vec<&str> = packages.iter().map(|package| package.suite).collect();
        // Backports depend on packages of their release.
        suites.extend(packages.iter().filter_map(|package| package.suite.strip_suffix("-backports")));
        let mut architectures: Vec<&str> = packages.iter().map(|package| &*package.architecture).collect();
        architectures.push(&native);
        for names in [&mut suites, &mut architectures] {
            names.sort_unstable();
            names.dedup();
        }
        let mirror = mirror(&sh)?;
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part))?;
        }
        fs::write(folder.join("status"), "")?;
        let signed =
            if Path::new(KEYRING).is_file() { format!("[signed-by={KEYRING}] ") } else { String::new() };
        let source = |suite: &&str| format!("deb {signed}{mirror} {suite} main\n");
        fs::write(folder.join("sources.list"), suites.iter().map(source).collect::<String>())?;
        fs::write(folder.join("apt.conf"), configuration(&sh, folder, &native, &architectures)?)?;

        let archive = Self { sh, folder: folder.to_path_buf() };
        step(&format!("reading the package lists of {} for {}", suites.join(", "), architectures.join(", ")));
        archive.apt_get().arg("update").read().context(HINT)?;
        Ok(archive)
    }

    /// Downloads packages, alone or with all their dependencies, and unpacks them into the folder
    /// `into`.
    pub(crate) fn unpack(&self, packages: &[Package], with_dependencies: bool, into: &Path) -> Result<()> {
        let downloads = self.folder.join("cache/archives");
        self.sh.change_dir(&downloads);
        let install: &[&str] = &["--yes", "--no-install-recommends", "--download-only", "install"];
        let action = if with_dependencies { install } else { &["download"] };
        let suite = packages.iter().map(|package| format!("--target-release={}", package.suite)).take(1);
        let requests: Vec<String> = suite.chain(packages.iter().map(Package::request)).collect();
        // apt prints the sizes. Standard output is for results.
        let mut apt_get = Command::from(self.apt_get().args(action).args(&requests));
        ensure!(apt_get.stdout(io::stderr()).status()?.success(), HINT);

        let is_later = packages.iter().any(|package| package.suite == "trixie");
        let mut files = cache::entries(&downloads)?;
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            // The machine's own C library is used, because it belongs to the machine's loader.
            // Programs of a later suite need a later one.
            name.ends_with(".deb") && (!name.starts_with("libc6_") || is_later)
        });
        step(&format!("unpacking {} packages", files.len()));
        let sh = &self.sh;
        files.iter().try_for_each(|file| Ok(cmd!(sh, "dpkg -x {file} {into}").quiet().run()?))
    }

    /// The first dependency of the package whose name has one of these prefixes.
    pub(crate) fn dependency(&self, package: &Package, prefixes: &[&str]) -> Result<Option<Package>> {
        let (sh, request) = (&self.sh, package.request());
        let show = cmd!(sh, "apt-cache show --no-all-versions {request}");
        let record = self.configured(show).read()?;
        let lines = record.lines().filter_map(|line| line.strip_prefix("Depends: "));
        let name = lines
            .flat_map(|line| line.split([',', '|']))
            .filter_map(|dependency| dependency.split_whitespace().next())
            .find(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        Ok(name.map(|name| Package { name: name.into(), ..package.clone() }))
    }

    fn apt_get(&self) -> Cmd<'_> {
        let sh = &self.sh;
        self.configured(cmd!(sh, "apt-get -q -o APT::Update::Error-Mode=any"))
    }

    fn configured<'a>(&self, command: Cmd<'a>) -> Cmd<'a> {
        command.env("APT_CONFIG", self.folder.join("apt.conf")).env("LC_ALL", "C").quiet()
    }
}

/// Fetches packages and unpacks them into a folder.
pub(crate) fn unpack(packages: &[Package], with_dependencies: bool, into: &Path) -> Result<()> {
    let apt = into.join("apt");
    Archive::open(&apt, packages)?.unpack(packages, with_dependencies, into)?;
    Ok(fs::remove_dir_all(apt)?)
}

/// The mirror of Debian: the one that the environment names, or that of apt's sources.
fn mirror(sh: &Shell) -> Result<String> {
    if let Some(uri) = env::var(MIRROR_VARIABLE).ok().filter(|uri| !uri.is_empty()) {
        return Ok(uri);
    }
    let uris = cmd!(sh, "apt-get update --print-uris").quiet().read()?;
    debian_uri(&uris).context(
        "apt's sources name no Debian mirror: set VDSO_TIME_DEBIAN_MIRROR=URI and install \
         debian-archive-keyring",
    )
}

/// The first Debian mirror among the files that apt would fetch:
/// `'URI/dists/SUITE/main/binary-...`.
fn debian_uri(uris: &str) -> Option<String> {
    uris.lines().find_map(|line| {
        let (uri, rest) = line.strip_prefix('\'')?.split_once("/dists/")?;
        let (suite, _) = rest.split_once("/main/binary-")?;
        (SUITES.contains(&suite) && !uri.starts_with("cdrom:")).then(|| uri.to_owned())
    })
}

fn configuration(sh: &Shell, folder: &Path, native: &str, architectures: &[&str]) -> Result<String> {
    let root = folder.display();
    let dump = cmd!(sh, "apt-config dump").quiet().read()?;
    let inherited: Vec<&str> =
        dump.lines().filter(|line| INHERITED.iter().any(|prefix| line.starts_with(prefix))).collect();
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
Dir::Cache "{root}/cache";
APT::Architecture "{native}";
APT::Architectures {{ "{listed}"; }};
APT::Sandbox::User "root";
Acquire::Languages "none";
{inherited}
"#
    ))
}
