//! The Debian mirror this machine uses, read from apt's own sources.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cache;

pub(crate) const MIRROR_VARIABLE: &str = "VDSO_TIME_DEBIAN_MIRROR";

const APT: &str = "/etc/apt";
const DEBIAN_KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Every mirror of Debian carries all of these, so an entry for any of them will do.
const SUITES: &[&str] = &[
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "sid",
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
];

/// Where packages come from, and the key their lists are signed with (`None`: apt's default).
#[derive(Debug, PartialEq)]
pub(crate) struct Mirror {
    pub(crate) uri: String,
    pub(crate) keyring: Option<PathBuf>,
}

impl Mirror {
    /// The URI without a password.
    pub(crate) fn name(&self) -> String {
        let (scheme, rest) = self.uri.split_once("://").unwrap_or(("", &self.uri));
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        format!("{scheme}://{host}{path}")
    }
}

/// One line of a `.list` file, or one paragraph of a `.sources` file.
#[derive(Debug, Default, PartialEq)]
struct Entry {
    uris: Vec<String>,
    suites: Vec<String>,
    components: Vec<String>,
    signed_by: Option<String>,
}

pub(crate) fn mirror() -> Result<Mirror, String> {
    let uri = match env::var(MIRROR_VARIABLE) {
        Ok(uri) if !uri.is_empty() => Some(uri),
        _ => None,
    };
    let entries = read_all(Path::new(APT))?;
    let entry = entries.iter().find(|entry| entry.is_debian());
    let uri = uri.or_else(|| entry?.uri().cloned());
    let uri = uri.ok_or_else(|| {
        format!(
            "no mirror of Debian among apt's sources in {APT}; \
             name one with {MIRROR_VARIABLE}=URI (and install debian-archive-keyring)"
        )
    })?;
    let named = entry.and_then(|entry| entry.signed_by.as_deref());
    let keyring = [DEBIAN_KEYRING, named.unwrap_or_default()]
        .map(PathBuf::from)
        .into_iter()
        .find(|file| file.is_absolute() && file.is_file());
    Ok(Mirror { uri, keyring })
}

fn read_all(apt: &Path) -> Result<Vec<Entry>, String> {
    let mut files = vec![apt.join("sources.list")];
    let parts = apt.join("sources.list.d");
    if parts.is_dir() {
        files.extend(cache::entries(&parts)?);
    }
    let mut entries = Vec::new();
    for file in files.into_iter().filter(|file| file.is_file()) {
        let parse = match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => parse_list,
            Some("sources") => parse_deb822,
            _ => continue, // apt does not read these either
        };
        let text = fs::read_to_string(&file).map_err(|error| cache::at(&file, &error))?;
        entries.extend(parse(&text));
    }
    Ok(entries)
}

impl Entry {
    fn uri(&self) -> Option<&String> {
        self.uris.iter().find(|uri| !uri.starts_with("cdrom:"))
    }

    /// Other archives use Debian's suite names as well, but sign with keys of their own.
    fn is_debian(&self) -> bool {
        let known = |suite: &String| {
            let name = suite.strip_suffix("-updates").unwrap_or(suite);
            SUITES.contains(&name)
        };
        self.suites.iter().any(known)
            && self.components.iter().any(|component| component == "main")
            && self.uri().is_some()
            && self
                .signed_by
                .as_ref()
                .is_none_or(|key| key.contains("debian-archive") || key.contains("BEGIN PGP PUBLIC KEY"))
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

/// The one-line format: `deb [options] URI suite component...`.
fn parse_list(text: &str) -> Vec<Entry> {
    text.lines().filter_map(parse_list_line).collect()
}

fn parse_list_line(line: &str) -> Option<Entry> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let rest = line.strip_prefix("deb")?;
    // Not `deb-src`.
    let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut fields = words(rest).into_iter();
    Some(Entry {
        uris: vec![fields.next()?],
        suites: vec![fields.next()?],
        components: fields.collect(),
        signed_by: options
            .split_whitespace()
            .find_map(|option| option.strip_prefix("signed-by="))
            .map(String::from),
    })
}

/// The deb822 format: paragraphs of `Field: value`, a value going on in indented lines.
fn parse_deb822(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for paragraph in lines.split(|line| line.trim().is_empty()) {
        let field = |name: &str| deb822_field(paragraph, name);
        let binary = words(&field("Types").unwrap_or_default()).iter().any(|kind| kind == "deb");
        let enabled = field("Enabled").is_none_or(|value| value != "no");
        if binary && enabled {
            entries.push(Entry {
                uris: words(&field("URIs").unwrap_or_default()),
                suites: words(&field("Suites").unwrap_or_default()),
                components: words(&field("Components").unwrap_or_default()),
                signed_by: field("Signed-By"),
            });
        }
    }
    entries
}

fn deb822_field(paragraph: &[&str], name: &str) -> Option<String> {
    let mut lines = paragraph.iter();
    let first = lines.find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then_some(value.trim())
    })?;
    let more = lines.take_while(|line| line.starts_with([' ', '\t']));
    let value = more.fold(first.to_string(), |value, line| value + "\n" + line.trim());
    Some(value.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::{Entry, Mirror, parse_deb822, parse_list, words};

    #[test]
    fn the_mirror_is_named_without_its_password() {
        for uri in ["https://a.example/debian", "https://me:secret@a.example/debian"] {
            let mirror = Mirror { uri: uri.into(), keyring: None };
            assert_eq!(mirror.name(), "https://a.example/debian");
        }
    }

    #[test]
    fn one_line_entries() {
        let entries = parse_list(
            "# deb https://no.example/debian sid main\n\
             deb-src https://no.example/debian sid main\n\
             deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] https://a.example/debian trixie main contrib # x\n\
             deb [signed-by=/k/other.gpg] https://b.example bookworm main\n",
        );
        let expected = Entry {
            uris: words("https://a.example/debian"),
            suites: words("trixie"),
            components: words("main contrib"),
            signed_by: Some("/k/debian-archive-keyring.gpg".into()),
        };
        assert_eq!(entries.first(), Some(&expected));
        let debian: Vec<bool> = entries.iter().map(Entry::is_debian).collect();
        assert_eq!(debian, [true, false]);
    }

    #[test]
    fn deb822_entries() {
        let entries = parse_deb822(
            "Types: deb deb-src\n# a mirror\nURIs: https://a.example/debian\nSuites: stable stable-updates\n\
             Components: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n URIs: x\n\n\n\
             Types: deb\nEnabled: no\nURIs: https://b.example\nSuites: sid\nComponents: main\n\n\
             types: deb\nuris: https://c.example/debian-security\nsuites: stable-security\ncomponents: main\n",
        );
        let uris: Vec<&String> = entries.iter().flat_map(|entry| &entry.uris).collect();
        assert_eq!(uris, ["https://a.example/debian", "https://c.example/debian-security"]);
        let debian: Vec<bool> = entries.iter().map(Entry::is_debian).collect();
        assert_eq!(debian, [true, false]);
    }
}
