//! Flame graphs.

use std::io;

#[cfg(feature = "svg")]
use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, Palette, PaletteMap};
#[cfg(feature = "svg")]
use inferno::flamegraph::{Options, from_lines};

#[cfg(feature = "svg")]
use crate::clock_read::SYSTEM_CALL;

/// Says that inferno is missing.
#[cfg(not(feature = "svg"))]
pub(crate) fn of(_: &[String], _: String, _: &str) -> io::Result<String> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "flame graphs need the feature `svg` of vdso-who",
    ))
}

/// Returns the graph of call chains, whose last function is the clock read.
///
/// # Errors
/// If there is none.
#[cfg(feature = "svg")]
pub(crate) fn of(folded: &[String], title: String, count_name: &str) -> io::Result<String> {
    if folded.is_empty() {
        return Err(io::Error::other(
            "there is no flame graph, because no clock read was seen",
        ));
    }
    let color = |r, g, b| Color { r, g, b };
    let (in_vdso, by_call, white) = (color(80, 180, 90), color(230, 60, 50), color(255, 255, 255));
    let mut colors = PaletteMap::default();
    let leaf = |line: &String| Some(line.rsplit_once(' ')?.0.rsplit(';').next()?.to_owned());
    for leaf in folded.iter().filter_map(leaf) {
        let color = if leaf == SYSTEM_CALL {
            by_call
        } else {
            in_vdso
        };
        colors.insert(leaf, color);
    }
    let mut options = Options::default();
    options.title = title;
    options.subtitle = Some("green: a read in the vDSO; red: a read by a system call".into());
    options.count_name = count_name.into();
    options.colors = Palette::Basic(BasicPalette::Yellow);
    options.bgcolors = Some(BackgroundColor::Flat(white));
    options.palette_map = Some(&mut colors);
    // The same function has the same colour in each graph.
    options.hash = true;
    let mut svg = Vec::new();
    from_lines(&mut options, folded.iter().map(String::as_str), &mut svg)
        .map_err(io::Error::other)?;
    String::from_utf8(svg).map_err(io::Error::other)
}
