//! Flame graphs.

use crate::error::Result;
use crate::report::Report;

/// Whether this build contains inferno, which draws the flame graphs.
pub(super) const IS_AVAILABLE: bool = cfg!(feature = "svg");

/// The error of a build without inferno.
pub(super) const UNAVAILABLE: &str =
    "this build cannot draw flame graphs: install vdso-who with the feature `svg`";

/// Returns an error, because this build does not contain inferno.
#[cfg(not(feature = "svg"))]
pub(super) fn text(_: &Report) -> Result<String> {
    Err(UNAVAILABLE.into())
}

/// Returns the call chains as a flame graph, for a browser: the reads in the vDSO are green, and
/// the reads through a system call are red.
///
/// # Errors
/// If there is no call chain.
#[cfg(feature = "svg")]
pub(super) fn text(report: &Report) -> Result<String> {
    use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, Palette, PaletteMap};
    use inferno::flamegraph::{Options, from_lines};

    const IN_VDSO: (u8, u8, u8) = (80, 180, 90);
    const BY_CALL: (u8, u8, u8) = (230, 60, 50);

    let mut colors = PaletteMap::default();
    for line in &report.folded {
        let leaf = leaf(line);
        let (r, g, b) = if leaf.starts_with(crate::clock_read::SYSTEM_CALL) {
            BY_CALL
        } else {
            IN_VDSO
        };
        colors.insert(leaf.to_owned(), Color { r, g, b });
    }
    let mut options = Options::default();
    options.title = title(report);
    options.subtitle = Some("green: a read in the vDSO; red: a read through a system call".into());
    // inferno prints this text after the number that belongs to a function:
    // `3 samples in clock reads, 75.00%`.
    options.count_name = if report.is_exact() {
        "clock reads".into()
    } else {
        "samples in clock reads".into()
    };
    options.colors = Palette::Basic(BasicPalette::Yellow);
    let white = Color {
        r: 255,
        g: 255,
        b: 255,
    };
    options.bgcolors = Some(BackgroundColor::Flat(white));
    options.palette_map = Some(&mut colors);
    // The same function has the same colour in each graph.
    options.hash = true;
    let mut svg = Vec::new();
    let lines = report.folded.iter().map(String::as_str);
    from_lines(&mut options, lines, &mut svg)?;
    Ok(String::from_utf8(svg)?)
}

/// Returns the last function of a call chain, which is the clock read.
#[cfg(feature = "svg")]
fn leaf(line: &str) -> &str {
    let chain = match line.rsplit_once(' ') {
        Some((chain, _)) => chain,
        None => line,
    };
    match chain.rsplit_once(';') {
        Some((_, leaf)) => leaf,
        None => chain,
    }
}

/// Returns the sentence with which a report begins, without the rate of reads. The rate is an
/// estimate that needs a note on its accuracy, and the title has room for only one line.
#[cfg(feature = "svg")]
fn title(report: &Report) -> String {
    let verdict = super::table::verdict(report);
    match verdict.split_once(": about ") {
        Some((share, _)) => share.to_owned(),
        None => verdict,
    }
}

#[cfg(all(test, feature = "svg"))]
mod tests {
    use crate::arguments::arguments;
    use crate::report::Report;

    #[test]
    fn a_flame_graph_has_reads_by_a_system_call_in_another_colour() {
        let chains = ["a;f;clock_gettime 3", "a;g;[system call] 1"];
        let mut report = Report::new(&arguments("--all"), None, None);
        report.folded = chains.map(String::from).to_vec();
        let svg = super::text(&report).unwrap();
        for (function, color) in [
            ("clock_gettime (3 samples in clock reads", "rgb(80,180,90)"),
            ("[system call] (1", "rgb(230,60,50)"),
        ] {
            let at = svg.find(function).unwrap();
            let fill = svg[at..].split("fill=\"").nth(1).unwrap();
            assert!(fill.starts_with(color), "{function}: {svg}");
        }
    }
}
