//! The difference of two lists of lines, each line taken as one thing.

/// The lines that were taken out (`-`) and put in (`+`), each near its neighbours.
///
/// Lines that only moved are not told, so lists can differ and this still be empty.
pub(crate) fn diff(old: &[&str], new: &[&str]) -> Vec<String> {
    let added = |line: &&&str| !old.contains(line);
    let mut lines = Vec::new();
    let mut rest = new.iter();
    for line in old {
        if new.contains(line) {
            let before = rest.by_ref().take_while(|other| *other != line);
            lines.extend(before.filter(added).map(|line| format!("+{line}")));
        } else {
            lines.push(format!("-{line}"));
        }
    }
    lines.extend(rest.filter(added).map(|line| format!("+{line}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn changed_lines_stand_together() {
        let old = ["a", "b", "c", "d"];
        assert!(diff(&old, &old).is_empty());
        assert_eq!(diff(&old, &["a", "B", "c", "d", "e"]), ["-b", "+B", "+e"].map(String::from));
        assert_eq!(diff(&old, &["c", "d"]), ["-a", "-b"].map(String::from));
        assert_eq!(diff(&[], &old), ["+a", "+b", "+c", "+d"].map(String::from));
        assert!(diff(&old, &["d", "c", "b", "a"]).is_empty());
    }
}
