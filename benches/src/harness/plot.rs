//! Charts of horizontal bars, as SVG on a white background of its own.

use plotters::coord::ranged1d::{IntoSegmentedCoord as _, SegmentValue};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::samples::OURS;

/// A chart.
pub struct Chart {
    /// The file's name.
    pub file: &'static str,
    /// The title.
    pub title: &'static str,
    /// Groups of bars, and the nanoseconds of each.
    pub groups: Vec<(String, Vec<(String, f64)>)>,
}

const WIDTH: u32 = 760;
const BAR: u32 = 19;
const FONT: (&str, u32) = ("sans-serif", 13);
const LETTER: usize = 7;
/// The height of the title and of the axis.
const MARGINS: u32 = 100;

impl Chart {
    /// Draws the chart.
    pub fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        self.draw(&mut text).map_err(|error| format!("{}: {error}", self.file))?;
        // plotters writes each text on a line of its own.
        Ok(text.replace("\">\n", "\">").replace("\n</text>", "</text>"))
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        // A group is a line with its name, and a line for each bar.
        let lines = self.groups.iter().flat_map(|(group, bars)| {
            let bars = bars.iter().map(|(name, nanos)| (name.as_str(), Some(*nanos)));
            std::iter::once((group.as_str(), None)).chain(bars)
        });
        // The axis counts from the bottom.
        let lines: Vec<(&str, Option<f64>)> = lines.collect::<Vec<_>>().into_iter().rev().collect();
        let nanos = || lines.iter().filter_map(|(_, nanos)| *nanos);
        let (least, most) = (nanos().fold(f64::INFINITY, f64::min), nanos().fold(0.0, f64::max));
        // The axis is logarithmic. The shortest bar must have a length too.
        let start = (least / 1.5).log10().floor();
        let end = start + (most.log10() - start) * 1.1;
        let letters = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);

        let size = (WIDTH, MARGINS + BAR * u32::try_from(lines.len())?);
        let area = SVGBackend::with_string(text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let count = i32::try_from(lines.len())?;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .caption(self.title, (FONT.0, 17))
            .y_label_area_size(u32::try_from(letters * LETTER + 10)?)
            .x_label_area_size(48)
            .build_cartesian_2d(start..end, (0..count).into_segmented())?;
        let name = |line: &SegmentValue<i32>| match line {
            SegmentValue::CenterOf(at) => lines.get(*at as usize).map_or("", |(name, _)| *name).to_string(),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .x_labels((end - start) as usize + 1)
            .y_labels(lines.len())
            .light_line_style(TRANSPARENT)
            .label_style(FONT)
            .x_label_formatter(&|place| 10_f64.powf(*place).to_string())
            .y_label_formatter(&name)
            .x_desc(format!("nanoseconds, logarithmic, from {}", 10_f64.powf(start)))
            .draw()?;
        let value = FONT.into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
        for (line, (name, nanos)) in (0..count).zip(&lines) {
            let Some(nanos) = *nanos else { continue };
            let color = if *name == OURS { RGBColor(9, 105, 218) } else { RGBColor(140, 149, 159) };
            let (low, high) = (SegmentValue::Exact(line), SegmentValue::Exact(line + 1));
            let mut bar = Rectangle::new([(start, low), (nanos.log10(), high)], color.filled());
            bar.set_margin(2, 2, 0, 0);
            chart.draw_series([bar])?;
            let text = if nanos < 100.0 { format!(" {nanos:.1}") } else { format!(" {nanos:.0}") };
            let place = (nanos.log10(), SegmentValue::CenterOf(line));
            chart.draw_series([Text::new(text, place, value.clone())])?;
        }
        area.present()?;
        Ok(())
    }
}
