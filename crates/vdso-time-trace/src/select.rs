//! [`Select`]: which sites.

use core::ptr;

use crate::site::Site;

/// Some sites.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Select<'a> {
    /// All.
    All,
    /// This one.
    Site(&'a Site),
    /// Those whose name matches: a `*` stands for any characters, or none.
    Name(&'a str),
    /// Those that call this function, by the end of its path: `clock_gettime` selects `vdso_time::clock_gettime` too, `Instant::now`
    /// does not select `MyInstant::now`.
    Function(&'a str),
}

impl Select<'_> {
    /// Whether a site is one of them.
    #[must_use]
    pub fn selects(&self, site: &Site) -> bool {
        match self {
            Self::All => true,
            Self::Site(wanted) => ptr::eq(*wanted, site),
            Self::Name(pattern) => matches(pattern.as_bytes(), site.name().as_bytes()),
            Self::Function(wanted) => ends_with(site.function(), wanted),
        }
    }
}

/// Whether a path is another, or ends with it.
fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

/// On a difference the last `*` takes one more character: no earlier one need be thought of again.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut again) = (0, 0, None);
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            again = Some((p + 1, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((behind, from)) = again {
            again = Some((behind, from + 1));
            (p, t) = (behind, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_characters() {
        let yes = [
            ("", ""),
            ("*", ""),
            ("a", "a"),
            ("a*", "a"),
            ("a*c", "abbc"),
            ("*b*", "abc"),
            ("*ab", "aab"),
            ("a*b*c", "a-b-b-c"),
        ];
        let no = [("", "a"), ("a", ""), ("a", "ab"), ("a*c", "ab"), ("*b", "abc"), ("ab*", "a")];
        for (pattern, text) in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn a_function_is_the_end_of_a_path() {
        assert!(ends_with("clock_gettime", "clock_gettime"));
        assert!(ends_with("vdso_time::clock_gettime", "clock_gettime"));
        assert!(ends_with("vdso_time::Instant::now", "Instant::now"));
        assert!(!ends_with("my_clock_gettime", "clock_gettime"));
        assert!(!ends_with("clock_gettime::inner", "clock_gettime"));
    }
}
