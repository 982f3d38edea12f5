//! A mend for the listing tool, which gives up on `use<...>` bounds.
//!
//! It prints a lifetime bound as it stands, so in rustdoc's JSON each `use<...>` is passed off as one.

const BEFORE: &str = r#"{"use":["#;
const AFTER: &str = "]}";

/// Rewrites `{"use":["'a","T"]}` to `{"outlives":"use<'a, T>"}`.
///
/// Nothing else looks like that: quotes in a string are escaped, and a `use` item holds no list.
pub(crate) fn as_lifetimes(json: &str) -> String {
    let mut parts = json.split(BEFORE);
    let mut text = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let (captured, rest) = part.split_once(AFTER).unwrap_or((part, ""));
        let captured = captured.replace('"', "").replace(',', ", ");
        text.push_str(r#"{"outlives":"use<"#);
        text.push_str(&captured);
        text.push_str(r#">"}"#);
        text.push_str(rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::as_lifetimes;

    #[test]
    fn only_bounds_change() {
        let json = r#"[{"use":["'a","T"]},{"use":[]},{"use":{"name":"x"}},"{\"use\":[\"y\"]}"]"#;
        let expected =
            r#"[{"outlives":"use<'a, T>"},{"outlives":"use<>"},{"use":{"name":"x"}},"{\"use\":[\"y\"]}"]"#;
        assert_eq!(as_lifetimes(json), expected);
        assert_eq!(as_lifetimes("{}"), "{}");
    }
}
