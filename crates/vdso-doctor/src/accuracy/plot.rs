//! The deviation over time, as an SVG.

use std::error::Error;
use std::fs;
use std::path::Path;

use plotters::prelude::*;

use super::deviation::Column;

/// Draws a bar for each part of the time, from the least to the greatest deviation.
pub(crate) fn draw(file: &Path, seconds: f64, columns: &[Column]) -> Result<(), Box<dyn Error>> {
    Ok(fs::write(file, svg(seconds, columns)?)?)
}

fn svg(seconds: f64, columns: &[Column]) -> Result<String, Box<dyn Error>> {
    let largest = columns.iter().flatten().flat_map(|(least, greatest)| [least.abs(), greatest.abs()]).max();
    let most = largest.unwrap_or(0).max(10) as f64 * 1.05;
    let width = seconds / columns.len() as f64;
    let mut text = String::new();
    let page = SVGBackend::with_string(&mut text, (800, 360)).into_drawing_area();
    page.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&page)
        .caption("Counter clock minus CLOCK_MONOTONIC, least and greatest", ("sans-serif", 18))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(65)
        .build_cartesian_2d(0.0..seconds, -most..most)?;
    chart
        .configure_mesh()
        .x_desc("time, s")
        .y_desc("deviation, ns")
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 14))
        .light_line_style(WHITE)
        .draw()?;
    let bars = columns.iter().enumerate().filter_map(|(at, column)| {
        let (least, greatest) = (*column)?;
        let left = at as f64 * width;
        // A bar of one value is still to be seen.
        let (bottom, top) = (least as f64 - most / 400.0, greatest as f64 + most / 400.0);
        Some(Rectangle::new([(left, bottom), (left + width, top)], RGBColor(38, 100, 142).filled()))
    });
    chart.draw_series(bars)?;
    page.present()?;
    drop(chart);
    drop(page);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::svg;

    #[test]
    fn the_plot_has_its_background_labels_and_bars_within_its_frame() {
        let text = svg(30.0, &[Some((-5, 12)), None, Some((3, 3))]).unwrap();
        assert!(text.contains("width=\"800\" height=\"360\""), "{text}");
        assert!(text.contains("fill=\"#FFFFFF\""), "{text}");
        for label in ["Counter clock minus CLOCK_MONOTONIC", "time, s", "deviation, ns", "10.0", "-10.0"] {
            assert!(text.contains(label), "{label} in {text}");
        }
        assert_eq!(text.matches("fill=\"#26648E\"").count(), 2, "{text}");
        for (name, limit) in [("x", 800.0), ("y", 360.0)] {
            let attribute = format!(" {name}=\"");
            for rest in text.split(&attribute).skip(1) {
                let value: f64 = rest.split('"').next().unwrap().parse().unwrap();
                assert!((0.0..=limit).contains(&value), "{name}={value} in {text}");
            }
        }
    }
}
