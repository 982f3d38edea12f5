//! Bar charts, as SVG for light and dark pages.
//!
//! A bar is a time, or a time as a multiple of another. So a long bar is slow in every chart.
//!
//! I looked for a library first. plotters writes each colour into the elements, so one file cannot
//! follow the page. charming draws an SVG with a JavaScript engine. poloto has style sheets, but
//! only one bar for each name and no logarithmic axis. All that we need is a loop over rectangles
//! and texts.

use std::fmt::Write as _;

use super::{OURS, Table};

/// The width of the picture in pixels. A page on a phone shows it at two thirds of its size, and
/// its texts can still be read.
const WIDTH: f64 = 560.0;
/// The distance from one bar to the next, and from a bar to a text.
const STEP: f64 = 17.0;
const GAP: f64 = 5.0;
/// The radius of a dot.
const RADIUS: f64 = 4.0;

/// A larger quotient of two values needs a logarithmic axis.
const LINEAR: f64 = 120.0;

const STYLE: &str = "\
text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif }
text { fill: #1f2328 }
.title { font-size: 15px }
.title, .row { font-weight: 600 }
.name, .note { fill: #59636e }
.name { text-anchor: end }
.bar { fill: #9aa4af }
.ours { fill: #0969da }
.line { stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.name, .note { fill: #9198a1 }
.bar { fill: #656c76 }
.ours { fill: #4493f8 }
.line { stroke: #3d444d }
}";

/// A chart of the first columns of a table.
pub(super) struct Chart<'a> {
    pub(super) table: &'a Table,
    pub(super) columns: usize,
    pub(super) title: &'a str,
    /// A description of the chart, for people who cannot see it.
    pub(super) description: &'a str,
}

/// The mapping from a value to its position in the picture.
struct Axis {
    is_log: bool,
    /// The value or its logarithm at the left end.
    low: f64,
    left: f64,
    scale: f64,
}

impl Axis {
    fn place(&self, value: f64) -> f64 {
        let value = if self.is_log { value.log10() } else { value };
        self.left + self.scale * (value - self.low)
    }
}

/// A bar of a row.
struct Bar<'a> {
    name: &'a str,
    value: f64,
    /// The value as the table has it.
    text: &'a str,
    is_ours: bool,
}

/// Returns the first number of a cell, as of `17.1, 15.6` and `200/0/1`.
pub(super) fn number(cell: &str) -> Option<f64> {
    first(cell).parse().ok()
}

fn first(cell: &str) -> &str {
    cell.split([',', '/']).next().unwrap_or_default()
}

impl Chart<'_> {
    /// Draws a group of bars for each row. The bars of this crate have a colour.
    pub(super) fn svg(&self) -> String {
        let axis = self.axis();
        let mut body = String::new();
        text(&mut body, "title", 0.0, STEP, self.title);
        let mut y = 2.0 * STEP;
        text(&mut body, "note", 0.0, y, &self.unit(&axis));
        for row in &self.table.rows {
            let bars = self.bars(row);
            y += 1.6 * STEP;
            text(&mut body, "row", 0.0, y, &row[0]);
            self.lines(&mut body, &axis, y + GAP, STEP * bars.len() as f64);
            for bar in bars {
                y += STEP;
                draw(&mut body, &axis, &bar, y);
            }
        }
        let height = y + STEP;
        let title = escape(self.title);
        let description = escape(self.description);
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' role='img' \
             aria-labelledby='title description' \
             width='{WIDTH}' height='{height:.0}' \
             viewBox='0 0 {WIDTH} {height:.0}'>\n\
             <title id='title'>{title}</title>\n\
             <desc id='description'>{description}</desc>\n\
             <style>\n{STYLE}\n</style>\n\
             {body}</svg>\n"
        )
    }

    fn names(&self) -> &[String] {
        &self.table.head[1..=self.columns]
    }

    /// Returns whether the values are ratios of two times. Then a line shows where they are equal.
    fn is_ratio(&self) -> bool {
        self.table.head[0].contains('/')
    }

    fn axis(&self) -> Axis {
        let mut least = f64::INFINITY;
        let mut most: f64 = if self.is_ratio() { 1.0 } else { 0.0 };
        for row in &self.table.rows {
            for bar in self.bars(row) {
                if bar.value > 0.0 {
                    least = least.min(bar.value);
                }
                most = most.max(bar.value);
            }
        }
        let is_log = !self.is_ratio() && most > least * LINEAR;
        let mut low = 0.0;
        let mut high = most;
        if is_log {
            low = least.min(1.0).log10().floor();
            high = most.max(1.0).log10();
        }
        let mut longest: f64 = 0.0;
        for name in self.names() {
            longest = longest.max(width(name));
        }
        let left = longest + 2.0 * GAP + RADIUS;
        // At the right of the longest bar is its value.
        let right = WIDTH - width("00000.0") - GAP;
        Axis {
            is_log,
            low,
            left,
            scale: (right - left) / (high - low),
        }
    }

    /// Returns the bars of a row. A contender that has no such call has none.
    fn bars<'a>(&'a self, row: &'a [String]) -> Vec<Bar<'a>> {
        let is_ours_or_all = !self.has_ours() || is_ours(&row[0]);
        let mut bars = Vec::new();
        for (name, cell) in self.names().iter().zip(&row[1..]) {
            if let Some(value) = number(cell) {
                bars.push(Bar {
                    name,
                    value,
                    text: first(cell),
                    is_ours: is_ours_or_all || is_ours(name),
                });
            }
        }
        bars
    }

    /// Returns whether a row or a column is this crate's.
    fn has_ours(&self) -> bool {
        for row in &self.table.rows {
            if is_ours(&row[0]) {
                return true;
            }
        }
        for name in self.names() {
            if is_ours(name) {
                return true;
            }
        }
        false
    }

    fn unit(&self, axis: &Axis) -> String {
        let mut unit = self.table.head[0].clone();
        if unit.starts_with('/') {
            unit.insert_str(0, "time ");
        }
        if axis.is_log {
            return format!("{unit}, logarithmic, with a line at each power of ten");
        }
        if self.is_ratio() {
            return format!("{unit}, with a line at 1");
        }
        unit
    }

    /// Draws the lines behind the bars of a row.
    fn lines(&self, body: &mut String, axis: &Axis, top: f64, height: f64) {
        let mut places = vec![axis.left];
        if axis.is_log {
            let right = WIDTH - width("00000.0");
            let mut power = axis.low as i32 + 1;
            let mut place = axis.place(10_f64.powi(power));
            while place < right {
                places.push(place);
                power += 1;
                place = axis.place(10_f64.powi(power));
            }
        } else if self.is_ratio() {
            places.push(axis.place(1.0));
        }
        for x in places {
            let _ = writeln!(
                body,
                "<path class='line' d='M{x:.0} {top:.0}v{height:.0}'/>"
            );
        }
    }
}

/// Draws a bar with its name and its value. A logarithmic axis has no zero from which a bar could
/// begin, so it has a line that ends in a dot.
fn draw(body: &mut String, axis: &Axis, bar: &Bar<'_>, y: f64) {
    let class = if bar.is_ours { "bar ours" } else { "bar" };
    let left = axis.left;
    let mut end = left;
    if !axis.is_log || bar.value > 0.0 {
        end = axis.place(bar.value);
    }
    let middle = y - 4.5;
    let height = if axis.is_log { 2.0 } else { 10.0 };
    let top = middle - height / 2.0;
    let width = (end - left).max(1.0);
    let _ = writeln!(
        body,
        "<rect class='{class}' x='{left:.1}' y='{top:.1}' width='{width:.1}' height='{height}'/>"
    );
    let mut gap = GAP;
    if axis.is_log {
        gap += RADIUS;
        let _ = writeln!(
            body,
            "<circle class='{class}' cx='{end:.1}' cy='{middle:.1}' r='{RADIUS}'/>"
        );
    }
    let name_end = if axis.is_log { left - RADIUS } else { left };
    text(body, "name", name_end - GAP, y, bar.name);
    text(body, "value", end + gap, y, bar.text);
}

/// Returns about how wide a text is.
fn width(text: &str) -> f64 {
    let mut width = 0.0;
    for letter in text.chars() {
        width += if letter.is_uppercase() || letter == '_' {
            9.4
        } else {
            7.4
        };
    }
    width
}

fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

fn text(body: &mut String, class: &str, x: f64, y: f64, text: &str) {
    let text = escape(text);
    // A String accepts every write.
    let _ = writeln!(
        body,
        "<text class='{class}' x='{x:.0}' y='{y:.0}'>{text}</text>"
    );
}

/// Returns a text of Markdown as one of XML.
fn escape(text: &str) -> String {
    text.replace('`', "")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::{Chart, Table};

    fn svg(head: &[&str], row: &str) -> String {
        let mut table = Table::new("", head.iter().copied());
        table.add("row", row.split(' ').map(|cell| Some(cell.into())));
        let chart = Chart {
            table: &table,
            columns: head.len() - 1,
            title: "a < b",
            description: "what it shows",
        };
        chart.svg()
    }

    /// Returns the class and the width of each bar.
    fn bars(svg: &str) -> Vec<(String, f64)> {
        let value = |text: &str, name| {
            let rest = text.split_once(name).unwrap().1;
            rest.split('\'').nth(1).unwrap().to_owned()
        };
        let mut bars = Vec::new();
        for bar in svg.split("<rect ").skip(1) {
            let class = value(bar, "class=");
            let width = value(bar, "width=");
            bars.push((class, width.parse().unwrap()));
        }
        bars
    }

    #[test]
    fn a_bar_is_as_long_as_its_value_and_a_missing_value_has_none() {
        for head in ["ns", "/ direct"] {
            let svg = svg(&[head, "vdso-time", "libc", "std"], "10 - 40,20");
            let found = bars(&svg);
            let [(ours, short), (other, long)] = found.as_slice() else {
                panic!("{found:?}");
            };
            assert!((long / short - 4.0).abs() < 0.01, "{found:?}");
            assert_eq!(ours, "bar ours");
            assert_eq!(other, "bar");
        }
    }

    #[test]
    fn values_that_differ_by_much_are_on_a_logarithmic_axis() {
        let svg = svg(&["ns", "libc", "std", "musl"], "1 10 10000");
        let mut ends = Vec::new();
        for circle in svg.split("cx='").skip(1) {
            let end: f64 = circle.split('\'').next().unwrap().parse().unwrap();
            ends.push(end);
        }
        let ratio = (ends[2] - ends[0]) / (ends[1] - ends[0]);
        assert!((ratio - 4.0).abs() < 0.01, "{ends:?}");
    }

    #[test]
    fn a_chart_names_itself_and_describes_what_it_shows() {
        let svg = svg(&["ns", "libc"], "1");
        assert!(svg.contains(" role='img' aria-labelledby='title description' "));
        assert!(svg.contains("<title id='title'>a &lt; b</title>"));
        assert!(svg.contains("<desc id='description'>what it shows</desc>"));
    }
}
