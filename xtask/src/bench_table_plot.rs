//! Horizontal bars, in groups, as SVG that can be read on a light and on a dark page.

use std::fmt::Write as _;

/// A bar of a plot.
pub(crate) struct Bar {
    pub(crate) plot: String,
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) nanos: f64,
}

/// The bars that are not grey.
const OURS: &str = "vdso-time";

const WIDTH: f64 = 760.0;
/// Where the bars begin, and how much is left for the number behind the longest.
const LEFT: f64 = 130.0;
const RIGHT: f64 = 80.0;
const LINE: f64 = 18.0;

/// Above this ratio of the longest bar to the shortest, the axis is logarithmic.
const MOST_ON_LINEAR_AXIS: f64 = 20.0;

const STYLE: &str = "text { font: 12px sans-serif; fill: #1f2328 } .axis { fill: #656d76 } \
    line { stroke: #d0d7de } rect { fill: #8c959f } rect.ours { fill: #0969da } \
    @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .axis { fill: #8d96a0 } \
    line { stroke: #30363d } rect { fill: #6e7681 } rect.ours { fill: #4493f8 } }";

/// The axis: its two ends, and whether equal steps are equal ratios.
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Axis {
    fn of(bars: &[&Bar]) -> Self {
        let nanos = bars.iter().map(|bar| bar.nanos);
        let (shortest, longest) =
            (nanos.clone().fold(f64::INFINITY, f64::min), nanos.fold(f64::MIN_POSITIVE, f64::max));
        if longest <= MOST_ON_LINEAR_AXIS * shortest {
            return Self { low: 0.0, high: longest, logarithmic: false };
        }
        // The shortest bar must have a length too.
        let low = 10_f64.powf((shortest.max(1e-3) / 2.0).log10().floor());
        Self { low, high: longest, logarithmic: true }
    }

    fn x(&self, nanos: f64) -> f64 {
        let part = if self.logarithmic {
            (nanos / self.low).ln() / (self.high / self.low).ln()
        } else {
            nanos / self.high
        };
        LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Where the axis is labelled: at each power of ten, or at four to ten round numbers.
    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let powers = std::iter::successors(Some(self.low), |tick| Some(tick * 10.0));
            return powers.take_while(|tick| *tick <= self.high).collect();
        }
        let power = 10_f64.powf(self.high.log10().floor());
        let step = [5.0, 2.0, 1.0].map(|part| power * part / 10.0);
        let step = step.into_iter().find(|step| self.high / step >= 4.0).unwrap_or(power);
        let multiples = std::iter::successors(Some(0.0), |tick| Some(tick + step));
        multiples.take_while(|tick| *tick <= self.high).collect()
    }
}

/// The bars in their order, each group under its name.
pub(crate) fn svg(bars: &[&Bar]) -> String {
    let axis = Axis::of(bars);
    let (mut body, mut y, mut group) = (String::new(), 0.0, "");
    for bar in bars {
        if bar.group != group {
            group = &bar.group;
            y += 1.5 * LINE;
            text(&mut body, ("start", ""), 8.0, y, group);
            y += 0.4 * LINE;
        }
        let (end, class) = (axis.x(bar.nanos), if bar.name == OURS { " class=\"ours\"" } else { "" });
        let width = end - LEFT;
        // A String takes every write.
        let _ = writeln!(
            body,
            "<rect{class} x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
            LINE - 4.0
        );
        text(&mut body, ("end", ""), LEFT - 8.0, y + 11.0, &bar.name);
        text(&mut body, ("start", ""), end + 6.0, y + 11.0, &number(bar.nanos));
        y += LINE;
    }
    let (bottom, mut lines) = (y + 4.0, String::new());
    for tick in axis.ticks() {
        let x = axis.x(tick);
        let _ = writeln!(lines, "<line x1=\"{x:.1}\" y1=\"4\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>");
        text(&mut body, ("middle", "axis"), x, bottom + 16.0, &tick.to_string());
    }
    let scale = if axis.logarithmic { "ns, logarithmic" } else { "ns" };
    text(&mut body, ("end", "axis"), WIDTH - 8.0, bottom + 32.0, scale);
    let height = bottom + 40.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\">\n\
         <style>{STYLE}</style>\n{lines}{body}</svg>\n"
    )
}

fn number(nanos: f64) -> String {
    if nanos < 100.0 { format!("{nanos:.1}") } else { format!("{nanos:.0}") }
}

fn text(body: &mut String, (anchor, class): (&str, &str), x: f64, y: f64, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    // A String takes every write.
    let _ = writeln!(
        body,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(nanos: &[f64]) -> Vec<Bar> {
        let bar = |&nanos| Bar { plot: "p".into(), group: "g".into(), name: "n".into(), nanos };
        nanos.iter().map(bar).collect()
    }

    #[test]
    fn the_axis_fits_the_bars() {
        let far = bars(&[2.5, 150.0]);
        let axis = Axis::of(&far.iter().collect::<Vec<_>>());
        assert!(axis.logarithmic && axis.x(2.5) > LEFT && axis.x(2.5) < axis.x(150.0));
        assert_eq!(axis.ticks(), [1.0, 10.0, 100.0]);
        let near = bars(&[44.0, 340.0]);
        let axis = Axis::of(&near.iter().collect::<Vec<_>>());
        assert!(!axis.logarithmic);
        assert_eq!(axis.ticks(), [0.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0]);
    }

    #[test]
    fn names_are_escaped() {
        let mut bars = bars(&[1.0]);
        bars[0].name = "a<b".into();
        assert!(svg(&bars.iter().collect::<Vec<_>>()).contains("a&lt;b"));
    }
}
