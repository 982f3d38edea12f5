//! Charts of horizontal bars, as SVG on a white background of its own.

use std::fmt::Write as _;

pub struct Chart {
    pub file: &'static str,
    pub title: &'static str,
    /// The bars of this name are blue.
    pub ours: &'static str,
    /// The bars of this name are black: the least that is possible.
    pub floor: &'static str,
    /// Groups of bars, and the nanoseconds of each.
    pub groups: Vec<(String, Vec<(String, f64)>)>,
}

const HEAD: &str =
    r##"font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="#fff"/>"##;

impl Chart {
    /// Draws the chart: a line for each group and for each bar.
    pub fn svg(&self) -> String {
        let powers = || self.groups.iter().flat_map(|(_, bars)| bars).map(|(_, nanos)| nanos.log10());
        // The lengths are logarithmic, and the shortest bar must have one too.
        let start = powers().fold(f64::INFINITY, f64::min) - 0.2;
        let scale = 440.0 / (powers().fold(0.0, f64::max) - start);
        let mut y = 24;
        let mut text = format!("<text x=\"20\" y=\"{y}\" font-size=\"17\">{}</text>\n", self.title);
        for (group, bars) in &self.groups {
            y += 26;
            // A String accepts every write.
            let _ = writeln!(text, r#"<text x="20" y="{y}" font-weight="bold">{group}</text>"#);
            for (name, nanos) in bars {
                y += 19;
                let (width, top) = (((nanos.log10() - start) * scale).round(), y - 13);
                let color = match name.as_str() {
                    name if name == self.ours => "#0969da",
                    name if name == self.floor => "#1f2328",
                    _ => "#8c959f",
                };
                let _ = writeln!(
                    text,
                    r#"<text x="160" y="{y}" text-anchor="end">{name}</text><rect x="170" y="{top}" width="{width}" height="16" fill="{color}"/><text x="{}" y="{y}">{nanos:.1}</text>"#,
                    width + 176.0,
                );
            }
        }
        let size = format!(r#"width="700" height="{0}" viewBox="0 0 700 {0}""#, y + 16);
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {size} {HEAD}\n{text}</svg>\n")
    }
}
