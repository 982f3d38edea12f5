//! The links of a package's README, for a reader who has the package alone.

use std::fs::read_to_string;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The address of a file in the newest version of a package: `{0}NAME/latest/source/PATH`.
const SOURCES: &str = "https://docs.rs/crate/";

/// Checks that each link leads to a file of the package, to a file of another one of these
/// packages, or to another site. Returns the number of links.
pub(crate) fn check(unpacked: &Path, package: &str) -> Result<usize> {
    let folder = unpacked.join(package);
    let readme = read_to_string(folder.join("README.md"))?;
    let links: Vec<_> = Parser::new_ext(&readme, Options::ENABLE_TABLES)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
            _ => None,
        })
        .collect();
    // docs.rs then shows it, and has no files next to it.
    let library = read_to_string(folder.join("src/lib.rs")).unwrap_or_default();
    let is_page = library.starts_with("#![doc = include_str!(\"../README.md\")]");
    for link in &links {
        let (address, anchor) = link.split_once('#').unwrap_or((link, ""));
        let file = match address.strip_prefix(SOURCES) {
            Some(source) => {
                ensure!(anchor.is_empty(), "README.md of {package}: docs.rs shows no headings: {link}");
                unpacked.join(source.replacen("/latest/source/", "/", 1))
            }
            None if address.contains("://") => {
                let name = address.strip_prefix("https://docs.rs/").and_then(|page| page.split('/').next());
                let is_ours = name.is_some_and(|name| name.starts_with("vdso-"));
                let is_known = unpacked.join(name.unwrap_or_default()).is_dir();
                ensure!(!is_ours || is_known, "README.md of {package}: no package has the page {link}");
                continue;
            }
            None if address.is_empty() => folder.join("README.md"),
            None => {
                ensure!(!is_page, "README.md of {package}: docs.rs has no {link} next to the page");
                folder.join(address)
            }
        };
        let text = read_to_string(&file);
        let text = text.with_context(|| format!("README.md of {package}: the package has no {link}"))?;
        ensure!(!address.starts_with(".."), "README.md of {package}: {link} is outside of the package");
        let is_there = anchor.is_empty() || anchors(&text).any(|known| known == anchor);
        ensure!(is_there, "README.md of {package}: {address} has no heading for {link}");
    }
    Ok(links.len())
}

/// The anchors that GitHub and crates.io make of headings.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let mut heading = None;
    Parser::new(text)
        .filter_map(move |event| {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => return heading.take(),
                Event::Text(text) | Event::Code(text) => heading.as_mut()?.push_str(&text),
                _ => {}
            }
            None
        })
        .map(|heading| {
            let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::workspace;

    #[test]
    fn a_link_leads_to_a_file_or_a_heading_that_readers_of_the_packages_have() {
        let folder = workspace::target().join("links-test");
        for name in ["vdso-a", "vdso-b"] {
            std::fs::create_dir_all(folder.join(name).join("src")).unwrap();
        }
        std::fs::write(folder.join("vdso-b/PAGE.md"), "# A page\n").unwrap();
        let library = folder.join("vdso-a/src/lib.rs");
        std::fs::write(&library, "").unwrap();
        let links = |readme: &str| {
            std::fs::write(folder.join("vdso-a/README.md"), readme).unwrap();
            check(&folder, "vdso-a").map_err(|error| error.to_string())
        };
        let page = "https://docs.rs/crate/vdso-b/latest/source/PAGE.md";
        let right = format!(
            "# What `it` is, twice\n[x](#what-it-is-twice) [y]({page}) [z](https://docs.rs/vdso-b/latest)"
        );
        assert_eq!(links(&right), Ok(3));
        assert_eq!(links("# A\n[x](README.md#a)"), Ok(1));
        for wrong in [
            "../vdso-b/PAGE.md",
            "PAGE.md",
            "#missing",
            "https://docs.rs/vdso-c",
            "https://docs.rs/crate/vdso-b/latest/source/MISSING.md",
            &format!("{page}#a-page"),
        ] {
            let error = links(&format!("| a |\n|---|\n| [x]({wrong}) |\n")).unwrap_err();
            assert!(error.contains(wrong), "{wrong}: {error}");
        }
        std::fs::write(&library, "#![doc = include_str!(\"../README.md\")]").unwrap();
        assert_eq!(links(&right), Ok(3));
        links("[x](README.md)").unwrap_err();
    }
}
