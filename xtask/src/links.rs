//! The links of pages: of a package's README for a reader who has the package alone, and of all
//! pages of the repository.

use std::fs::read_to_string;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::workspace;

/// The address of a file in the newest version of a package: `{0}NAME/latest/source/PATH`.
const SOURCES: &str = "https://docs.rs/crate/";

/// Checks that each link leads to a file of the package or of another one of these packages, to
/// another site or, in the README of the repository, to a file of it. Returns the number of links.
pub(crate) fn check(unpacked: &Path, package: &str) -> Result<usize> {
    let folder = unpacked.join(package);
    let readme = read_to_string(folder.join("README.md"))?;
    // docs.rs shows such a README.md as the crate's page, without the files next to it.
    let library = read_to_string(folder.join("src/lib.rs")).unwrap_or_default();
    let is_page = library.starts_with("#![doc = include_str!(\"../README.md\")]");
    let check = |link: &str| {
        let (address, anchor) = link.split_once('#').unwrap_or((link, ""));
        let file = match address.strip_prefix(SOURCES) {
            Some(source) => {
                ensure!(anchor.is_empty(), "docs.rs shows no headings");
                unpacked.join(source.replacen("/latest/source/", "/", 1))
            }
            None if address.contains("://") => {
                let name = address.strip_prefix("https://docs.rs/").and_then(|page| page.split('/').next());
                let ours = name.filter(|name| name.starts_with("vdso-"));
                return ours.map_or(Ok(()), |name| leads_to(&unpacked.join(name), ""));
            }
            None if address.is_empty() => folder.join("README.md"),
            None => {
                ensure!(!is_page && !address.starts_with(".."), "it is outside of what a reader has");
                // crates.io makes it a link into the repository, whose root is vdso-time's folder.
                if package == "vdso-time" { workspace::root().join(address) } else { folder.join(address) }
            }
        };
        leads_to(&file, anchor)
    };
    let links = links(&readme);
    for link in &links {
        check(link).with_context(|| format!("README.md of {package}: {link}"))?;
    }
    Ok(links.len())
}

/// Returns the addresses of the links and pictures of a page.
fn links(page: &str) -> Vec<String> {
    let links = Parser::new_ext(page, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.into()),
        _ => None,
    });
    links.collect()
}

fn leads_to(file: &Path, anchor: &str) -> Result<()> {
    ensure!(file.exists(), "it leads to nothing");
    let has_heading = || Ok::<_, anyhow::Error>(anchors(&read_to_string(file)?).any(|known| known == anchor));
    ensure!(anchor.is_empty() || has_heading()?, "the page has no such heading");
    Ok(())
}

/// Returns the anchors that GitHub and crates.io give to headings.
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
    use super::{check, leads_to, links, workspace};

    #[test]
    fn links_between_pages_lead_to_files_and_headings() {
        let sh = workspace::shell().unwrap();
        let pages = xshell::cmd!(sh, "git ls-files *.md").quiet().read().unwrap();
        let mut count = 0;
        // rustdoc checks the pages beside sources.
        for page in
            pages.lines().filter(|page| !page.contains("/src/")).map(|page| workspace::root().join(page))
        {
            for link in links(&std::fs::read_to_string(&page).unwrap()) {
                let (address, anchor) = link.split_once('#').unwrap_or((&link, ""));
                if address.contains("://") {
                    continue;
                }
                let beside = page.with_file_name(address);
                let file = if address.is_empty() { &page } else { &beside };
                leads_to(file, anchor).unwrap_or_else(|error| panic!("{}: {link}: {error}", page.display()));
                count += 1;
            }
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn a_link_leads_to_a_file_or_a_heading_that_readers_of_the_packages_have() {
        let folder = workspace::target().join("links-test");
        for name in ["vdso-a", "vdso-b"] {
            std::fs::create_dir_all(folder.join(name).join("src")).unwrap();
        }
        std::fs::write(folder.join("vdso-b/PAGE.md"), "# A page\n").unwrap();
        let library = folder.join("vdso-a/src/lib.rs");
        std::fs::write(&library, "").unwrap();
        let of = |package: &str, readme: &str| {
            std::fs::create_dir_all(folder.join(package)).unwrap();
            std::fs::write(folder.join(package).join("README.md"), readme).unwrap();
            check(&folder, package).map_err(|error| error.to_string())
        };
        let links = |readme: &str| of("vdso-a", readme);
        let page = "https://docs.rs/crate/vdso-b/latest/source/PAGE.md";
        let right = format!(
            "# What `it` is, twice\n[x](#what-it-is-twice) [y]({page}) [z](https://docs.rs/vdso-b/latest)"
        );
        assert_eq!(links(&right), Ok(3));
        assert_eq!(links("# A\n[x](README.md#a)"), Ok(1));
        let other = "[x](tools/vdso-doctor/README.md)";
        assert_eq!(of("vdso-time", other), Ok(1));
        links(other).unwrap_err();
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
