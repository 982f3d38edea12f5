//! Lines, numbers, and names that are too long.

/// The columns of a text whose reader has no known width.
pub(crate) const COLUMNS: usize = 80;

/// Returns a text in lines of at most so many columns. A short command, in backticks, stays in one
/// line.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let mut kept = String::new();
    let mut is_command = false;
    for part in text.split('`') {
        if is_command {
            kept.push('`');
        }
        if is_command && part.len() < columns / 2 {
            kept += &part.replace(' ', "\u{a0}");
        } else {
            kept += part;
        }
        if is_command {
            kept.push('`');
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

/// Returns a number with three digits.
pub(crate) fn number(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Returns an estimate with two digits: 7900, 48 k, 19 M.
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

/// Returns a name that fits. A function's own name is at the end, so that stays: parameters go
/// first, then the arguments of templates, then the beginning.
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

/// Puts `..` in place of what is in brackets, but not in place of the type and the trait of
/// `<T as Trait>::function`.
fn without_content(name: &str, open: char, close: char) -> String {
    let content = format!("{open}..{close}");
    // Control characters stand for brackets that are kept.
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
    // The innermost brackets come first.
    while let Some(distance) = text[at..].find(close) {
        let end = at + distance;
        match text[..end].rfind(open) {
            // The bracket of an operator has no other.
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
