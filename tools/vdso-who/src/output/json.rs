//! JSON, which `schema.json` describes.

use crate::error::Result;
use crate::report::Report;

pub(super) fn text(report: &Report) -> Result<String> {
    let json = serde_json::to_string_pretty(report)?;
    Ok(without_control_characters(&json) + "\n")
}

/// Returns a report in one line, which a collector of logs or metrics treats as one event.
pub(crate) fn line(report: &Report) -> serde_json::Result<String> {
    let json = serde_json::to_string(report)?;
    Ok(without_control_characters(&json) + "\n")
}

/// Escapes the control characters of JSON that a terminal would obey.
///
/// serde_json escapes only the characters below U+0020, but a terminal also obeys other control
/// characters, for example U+009B. In the text from serde_json, such a character can occur only
/// inside a string, where an escape sequence has the same meaning as the character itself. So it
/// can be escaped without parsing the text.
fn without_control_characters(json: &str) -> String {
    let escaped = |letter: char| match letter {
        '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(letter)),
        _ => letter.into(),
    };
    json.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::without_control_characters;

    #[test]
    fn a_terminal_finds_no_control_characters_in_json() {
        let name = "a\x1b[31m\u{7f}\u{9b}32m\u{a0}\u{e9}";
        let json = without_control_characters(&serde_json::to_string(&[name]).unwrap());
        assert!(!json.contains(char::is_control), "{json:?}");
        let parsed: [String; 1] = serde_json::from_str(&json).unwrap();
        assert_eq!(parsed, [name]);
    }
}
