//! Lines, numbers, and names that are too long.

/// The columns of a text whose reader has no known width.
pub(crate) const COLUMNS: usize = 80;

/// Returns a text in lines of 80 columns. A command, in backticks, stays in one line.
pub(crate) fn wrapped(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| match index % 2 {
        1 if part.len() < COLUMNS / 2 => part.replace(' ', "\u{a0}"),
        _ => part.into(),
    });
    let text = parts.collect::<Vec<_>>().join("`");
    let options =
        textwrap::Options::new(COLUMNS).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(&text, options).replace('\u{a0}', " ")
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
    let digits = [99.95, 9.995]
        .iter()
        .filter(|limit| value < **limit)
        .count();
    format!("{value:.digits$}")
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
    let end = name.chars().skip((count + 3).saturating_sub(width));
    if count <= width {
        name
    } else {
        "...".chars().chain(end).collect()
    }
}

/// Puts `..` in the place of what is in brackets, but not in that of the type and the trait of
/// `<T as Trait>::function`.
fn without_content(name: &str, open: char, close: char) -> String {
    let content = format!("{open}..{close}");
    // Control characters stand for what is no bracket, or is short.
    let kept = ["->", "()", "(anonymous namespace)", &content]
        .into_iter()
        .zip('\u{1}'..);
    let mut text = kept.clone().fold(name.to_owned(), |text, (from, to)| {
        text.replace(from, &to.to_string())
    });
    let mut at = 0;
    // The innermost brackets come first.
    while let Some(end) = text[at..].find(close).map(|end| at + end) {
        match text[..end].rfind(open) {
            // That of an operator has no other.
            None | Some(0) => at = end + 1,
            Some(start) => {
                text.replace_range(start..=end, "\u{4}");
                at = at.min(start);
            }
        }
    }
    kept.fold(text, |text, (to, from)| text.replace(from, to))
}
