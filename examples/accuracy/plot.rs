//! The deviation over time, as an SVG.

use std::fmt::Write as _;
use std::time::Duration;

use super::deviation::{BUCKETS, Bucket};

const LEFT: f64 = 60.0;
const TOP: f64 = 30.0;
const WIDTH: f64 = BUCKETS as f64;
const HEIGHT: f64 = 240.0;

/// A bar for each part of the time, from the least to the greatest deviation.
pub(crate) fn svg(buckets: &[Option<Bucket>], length: Duration) -> String {
    let sizes = buckets.iter().flatten().flat_map(|bucket| [bucket.least, bucket.greatest]);
    let largest = sizes.map(i64::abs).max().unwrap_or(0).max(10);
    let scale = (largest as u64).div_ceil(10) as f64 * 10.0;
    let y = |nanos: f64| TOP + HEIGHT / 2.0 * (1.0 - nanos / scale);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\">Counter clock less CLOCK_MONOTONIC, ns, least and greatest of each {:.0} ms</text>",
        LEFT + WIDTH + 20.0,
        TOP + HEIGHT + 40.0,
        length.as_secs_f64() * 1e3 / WIDTH,
    );
    for nanos in [-scale, -scale / 2.0, 0.0, scale / 2.0, scale] {
        let (y, right) = (y(nanos), LEFT + WIDTH);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ccc\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{nanos:.0}</text>",
            LEFT - 6.0,
            y + 4.0,
        );
    }
    for (column, bucket) in buckets.iter().enumerate() {
        let Some(bucket) = bucket else { continue };
        let (top, bottom) = (y(bucket.greatest as f64), y(bucket.least as f64));
        let _ = writeln!(
            svg,
            "<rect x=\"{}\" y=\"{top:.1}\" width=\"1\" height=\"{:.1}\" fill=\"#26648e\"/>",
            LEFT + column as f64,
            (bottom - top).max(1.0),
        );
    }
    for part in [0.0, 0.5, 1.0] {
        // To the millisecond, without zeros at the end: half of 5 s is 2.5 s.
        let seconds = (length.as_secs_f64() * part * 1e3).round() / 1e3;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{seconds} s</text>",
            LEFT + WIDTH * part,
            TOP + HEIGHT + 20.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}
