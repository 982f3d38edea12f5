//! The formatting of lines, numbers and long names.

/// The number of columns of a line if the width of the terminal is not known.
pub(crate) const COLUMNS: usize = 80;

/// Wraps a text into lines of at most `columns` columns. Does not split a short command in
/// backticks.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let mut kept = String::new();
    let mut is_command = false;
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            kept.push('`');
        }
        if is_command && part.len() < columns / 2 {
            kept += &part.replace(' ', "\u{a0}");
        } else {
            kept += part;
        }
        is_command = !is_command;
    }
    let splitter = textwrap::WordSplitter::NoHyphenation;
    let options = textwrap::Options::new(columns.max(20)).word_splitter(splitter);
    textwrap::fill(&kept, options).replace('\u{a0}', " ")
}

pub(crate) fn times(count: u64) -> String {
    if count == 1 {
        "once".into()
    } else {
        format!("{count} times")
    }
}

/// Returns a number with three significant digits.
pub(crate) fn number(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Returns an estimate with two significant digits: 7900, 48 k, 19 M.
pub(crate) fn estimate(value: f64) -> String {
    let unit = 10_f64.powf(value.max(1.0).log10().floor() - 1.0).max(1.0);
    let value = (value / unit).round() * unit;
    let (size, name) = match value {
        1e9.. => (1e9, " G"),
        1e6.. => (1e6, " M"),
        1e4.. => (1e3, " k"),
        _ => (1.0, ""),
    };
    let digits = usize::from(size > 1.0 && value / size < 10.0);
    format!("{:.digits$}{name}", value / size)
}

/// Shortens a name until it fits. Parameters are removed first, then the arguments of templates,
/// then the beginning. The end stays, because it is the function's own name.
pub(crate) fn shortened(name: &str, width: usize) -> String {
    let mut name = name.to_owned();
    for [open, close] in [['(', ')'], ['<', '>']] {
        if name.chars().count() > width {
            name = without_content(&name, open, close);
        }
    }
    let count = name.chars().count();
    if count <= width {
        return name;
    }
    let end = name.chars().skip((count + 3).saturating_sub(width));
    "...".chars().chain(end).collect()
}

/// Replaces the content of brackets with `..`, except the type and the trait of
/// `<T as Trait>::function`.
fn without_content(name: &str, open: char, close: char) -> String {
    let content = format!("{open}..{close}");
    // Brackets that are kept are replaced with control characters meanwhile.
    let kept = [
        ("->", "\u{1}"),
        ("()", "\u{2}"),
        ("(anonymous namespace)", "\u{3}"),
        (&content, "\u{4}"),
    ];
    let mut text = name.to_owned();
    for (brackets, mark) in kept {
        text = text.replace(brackets, mark);
    }
    let mut at = 0;
    // The innermost brackets are replaced first.
    while let Some(distance) = text[at..].find(close) {
        let end = at + distance;
        match text[..end].rfind(open) {
            // A closing bracket without an opening one belongs to the name of an operator. An
            // opening one at the start is the bracket of `<T as Trait>`.
            None | Some(0) => at = end + 1,
            Some(start) => {
                text.replace_range(start..=end, "\u{4}");
                at = at.min(start);
            }
        }
    }
    for (brackets, mark) in kept {
        text = text.replace(mark, brackets);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_only_replaces_spaces_with_line_breaks() {
        for text in [
            "",
            "`",
            "a `b",
            "a ``",
            "a `b c` d",
            "a `b c` `d",
            "to run a short command it is: `one two three`",
            "`a long command is split: one two three four five six seven eight` `",
        ] {
            let lines = wrapped(text, 40);
            assert_eq!(lines.replace('\n', " "), text);
        }
        let lines = wrapped("a short command is in one line: `one two three`", 40);
        assert_eq!(lines, "a short command is in one line:\n`one two three`");
    }
}
