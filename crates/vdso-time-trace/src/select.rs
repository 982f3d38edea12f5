//! [`Select`]: a choice of sites.

use core::ptr;

use crate::site::Site;

/// A choice of sites.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Select<'a> {
    /// All sites.
    All,
    /// One site.
    Site(&'a Site),
    /// The sites whose name matches a pattern, in which `*` matches any characters.
    Name(&'a str),
}

impl Select<'_> {
    /// Whether a site is selected.
    #[must_use]
    pub fn selects(&self, site: &Site) -> bool {
        match self {
            Self::All => true,
            Self::Site(selected) => ptr::eq(*selected, site),
            Self::Name(pattern) => matches(pattern, site.name()),
        }
    }
}

/// Whether a pattern matches a text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = text.strip_prefix(start) else { return false };
    // The first match of a part leaves the most text to the parts after it.
    for part in middle.split('*') {
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        for (text, yes, no) in [
            ("", &["", "*"][..], &["a"][..]),
            ("a", &["a", "*", "a*", "*a"], &["", "ab", "ab*", "a*a"]),
            ("aab", &["*ab", "a*b", "aab**"], &["*a", "a*c"]),
            ("abbc", &["a*c", "*b*"], &["*bb", "b*"]),
            ("a-b-b-c", &["a*b*c", "*b*b*"], &["a*b*b*b*c"]),
        ] {
            assert!(yes.iter().all(|pattern| matches(pattern, text)), "{text}: {yes:?}");
            assert!(!no.iter().any(|pattern| matches(pattern, text)), "{text}: {no:?}");
        }
    }
}
