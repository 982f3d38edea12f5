//! Lines, numbers, and names that are too long.

/// The columns of a text whose reader has no known width.
pub(crate) const COLUMNS: usize = 80;

/// Returns a text in lines of 80 columns. A command, in backticks, stays in one line.
#[doc(hidden)]
#[must_use]
pub fn wrapped(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| match index % 2 {
        1 if part.len() < COLUMNS / 2 => part.replace(' ', "\u{a0}"),
        _ => part.into(),
    });
    let text = parts.collect::<Vec<_>>().join("`");
    let options = textwrap::Options::new(COLUMNS).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(&text, options).replace('\u{a0}', " ")
}

pub(crate) fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// Returns a number with three digits.
pub(crate) fn number(value: f64) -> String {
    let digits = [99.95, 9.995].iter().filter(|limit| value < **limit).count();
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
            name = without_content(&name, open, close).unwrap_or(name);
        }
    }
    let count = name.chars().count();
    let end = name.chars().skip((count + 3).saturating_sub(width));
    if count <= width { name } else { "...".chars().chain(end).collect() }
}

/// Puts `..` in the place of what is in brackets. None if they have no order, as in `operator<`.
fn without_content(name: &str, open: char, close: char) -> Option<String> {
    let (mut text, mut content, mut depth) = (String::new(), String::new(), 0_u32);
    // `<T as Trait>::function` keeps the type.
    let (mut last, mut is_outer) = (' ', name.starts_with('<') && open == '<');
    for (index, char) in name.chars().enumerate() {
        let is_outer_end = is_outer && depth == 0 && char == close && last != '-';
        if is_outer_end || (is_outer && index == 0) {
            is_outer = !is_outer_end;
            text.push(char);
            last = char;
            continue;
        }
        let closes = char == close && last != '-';
        depth = depth.checked_sub(u32::from(closes))?;
        if closes && depth == 0 {
            let is_kept = content.is_empty() || content == "anonymous namespace";
            text += if is_kept { &content } else { ".." };
            content.clear();
        }
        if depth > 0 { &mut content } else { &mut text }.push(char);
        depth += u32::from(char == open);
        last = char;
    }
    (depth == 0).then_some(text)
}
