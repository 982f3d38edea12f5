//! Bar charts, as SVG for light and dark pages.
//!
//! I looked for a library first. plotters writes each colour into the elements, so one file cannot
//! follow the page. charming draws an SVG by a JavaScript engine. poloto has style sheets, but one
//! bar for each name and no logarithmic axis. What is needed here is a loop of rectangles and
//! texts.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{OURS, Table};

/// Pixels: of the picture, from one bar to the next, and between a bar and a text.
const WIDTH: f64 = 820.0;
const STEP: f64 = 16.0;
const GAP: f64 = 5.0;
/// More bars stand in two columns.
const MOST: usize = 30;

/// A larger quotient of two values needs a logarithmic axis.
const LINEAR: f64 = 120.0;

const STYLE: &str = "text{font:12px system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}\
    .name,.note{fill:#59636e}.row{font-weight:600}.name{text-anchor:end}.bar{fill:#9aa4af}.ours{fill:#0969da}\
    .line{stroke:#d1d9e0}@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.name,.note{fill:#9198a1}\
    .bar{fill:#656c76}.ours{fill:#4493f8}.line{stroke:#3d444d}}";

/// Returns the first number of a cell, as of `17.1, 15.6` and `200/0/1`.
pub(super) fn number(cell: &str) -> Option<f64> {
    cell.split([',', '/']).next()?.parse().ok()
}

/// Draws the first columns of a table: a group of bars for each row, those of this crate in colour.
pub(super) fn svg(table: &Table, columns: usize) -> String {
    let names = &table.head[1..=columns];
    let values = table
        .rows
        .iter()
        .flat_map(|row| row[1..=columns].iter().filter_map(|cell| number(cell)));
    let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    // The bars of ratios begin at 1.
    let is_ratio = table.head[0].contains('/');
    let is_log = is_ratio || most > least * LINEAR;
    let low = if is_log {
        least.min(1.0).log10().floor()
    } else {
        0.0
    };
    let high = if is_log { most.max(1.0).log10() } else { most };
    let panels = if values.len() > MOST { 2.0 } else { 1.0 };
    let panel = (WIDTH + 2.0 * GAP) / panels;
    let left = names.iter().map(|name| width(name)).fold(0.0, f64::max) + 2.0 * GAP;
    // At the right of the longest bar is its value.
    let scale = (panel - left - width("00000.0") - 2.0 * GAP) / (high - low);
    let place = |value: f64| left + scale * (if is_log { value.log10() } else { value } - low);
    let zero = if is_ratio { place(1.0) } else { left };

    let has_ours = table
        .rows
        .iter()
        .map(|row| &row[0])
        .chain(names)
        .any(|name| is_ours(name));
    let mut body = String::new();
    let mut ends = [STEP; 2];
    for row in &table.rows {
        let side = usize::from(panels > 1.0 && ends[0] > ends[1]);
        let (x, y) = (side as f64 * panel, &mut ends[side]);
        text(&mut body, "row", x, *y, &row[0]);
        let bars = names
            .iter()
            .zip(&row[1..])
            .filter_map(|(name, cell)| Some((name, number(cell)?, cell)));
        let bars: Vec<_> = bars
            .filter(|(_, value, _)| *value > 0.0 || !is_log)
            .collect();
        let (top, bottom) = (*y + 5.0, *y + 5.0 + STEP * bars.len() as f64);
        let powers = (low as i32..=high as i32)
            .filter(|_| is_log)
            .map(|power| place(10_f64.powi(power)));
        for at in powers
            .chain([zero])
            .map(|at| at.round() as i64)
            .collect::<BTreeSet<_>>()
        {
            let at = at as f64 + x;
            let _ = write!(
                body,
                "<path class='line' d='M{at:.0} {top:.0}V{bottom:.0}'/>"
            );
        }
        for (name, value, cell) in bars {
            *y += STEP;
            let at = place(value);
            let (from, to) = (x + at.min(zero), x + at.max(zero).max(zero + 1.0));
            let is_gray = has_ours && !is_ours(name) && !is_ours(&row[0]);
            let ours = if is_gray { "" } else { " ours" };
            // A logarithmic axis has no zero from which a bar could begin, so it has dots.
            let (height, radius) = if is_log && !is_ratio {
                (2.0, 4.5)
            } else {
                (10.0, 0.0)
            };
            let (length, middle, above) = (to - from, *y - 4.0, *y - 4.0 - height / 2.0);
            let _ = write!(
                body,
                "<g class='bar{ours}'><rect x='{from:.1}' y='{above:.0}' width='{length:.1}' height='{height}'/>\
                 <circle cx='{to:.1}' cy='{middle:.0}' r='{radius}'/></g>"
            );
            text(&mut body, "name", x + left - GAP, *y, name);
            text(
                &mut body,
                "value",
                to + GAP + radius / 2.0,
                *y,
                cell.split(',').next().unwrap_or_default(),
            );
        }
        *y += STEP * 1.6;
    }
    let height = ends[0].max(ends[1]);
    let axis = if is_log {
        ", logarithmic, with a line at each power of ten"
    } else {
        ""
    };
    let zero = if is_ratio { ". A bar begins at 1" } else { "" };
    text(
        &mut body,
        "note",
        0.0,
        height,
        &format!("{}{axis}{zero}", table.head[0]),
    );
    let height = height + STEP / 2.0;
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height:.0}' \
         viewBox='0 0 {WIDTH} {height:.0}'>\n<style>{STYLE}</style>\n{body}</svg>\n"
    )
}

/// Returns about how wide a text is.
fn width(text: &str) -> f64 {
    text.chars()
        .map(|letter| {
            if letter.is_uppercase() || letter == '_' {
                8.8
            } else {
                7.0
            }
        })
        .sum()
}

fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

fn text(body: &mut String, class: &str, x: f64, y: f64, text: &str) {
    let text = text
        .replace('`', "")
        .replace('&', "&amp;")
        .replace('<', "&lt;");
    // A String accepts every write.
    let _ = writeln!(
        body,
        "<text class='{class}' x='{x:.0}' y='{y:.0}'>{text}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::{Table, svg};

    /// Returns the class and the width of each bar of a table with one row.
    fn bars(head: &[&str], row: &str) -> Vec<(String, f64)> {
        let mut table = Table::new("", head.iter().copied());
        table.add("row", row.split(' ').map(|cell| Some(cell.into())));
        let svg = svg(&table, head.len() - 1);
        let value = |text: &str, name| {
            let rest = text.split_once(name).unwrap().1;
            rest.split('\'').nth(1).unwrap().to_owned()
        };
        let bars = svg.split("<g ").skip(1);
        bars.map(|bar| (value(bar, "class="), value(bar, "width=").parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_bar_is_as_long_as_its_value_and_that_of_a_ratio_as_its_logarithm() {
        let found = bars(&["ns", "vdso-time", "libc", "std"], "10 - 40,20");
        let ratio = found[1].1 / found[0].1;
        assert!((ratio - 4.0).abs() < 0.01 && found.len() == 2, "{found:?}");
        assert_eq!([&*found[0].0, &*found[1].0], ["bar ours", "bar"]);
        let found = bars(&["/ direct", "libc", "std", "musl"], "0.1 10 100");
        let ratios = [found[1].1 / found[0].1, found[2].1 / found[0].1];
        assert!(
            (ratios[0] - 1.0).abs() < 0.01 && (ratios[1] - 2.0).abs() < 0.01,
            "{found:?}"
        );
    }
}
