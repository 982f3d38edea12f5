//! Flame graphs.

use std::io;

use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, Palette, PaletteMap};
use inferno::flamegraph::{Options, from_lines};

use crate::clock_read::SYSTEM_CALL;

const IN_VDSO: Color = Color { r: 80, g: 180, b: 90 };
const BY_CALL: Color = Color { r: 230, g: 60, b: 50 };
const WHITE: Color = Color { r: 255, g: 255, b: 255 };

/// Returns the graph of call chains, whose last function is the clock read.
///
/// # Errors
/// If there is none.
pub(crate) fn of(folded: &[String], title: String, count_name: &str) -> io::Result<String> {
    if folded.is_empty() {
        return Err(io::Error::other("there is no flame graph, because no clock read was seen"));
    }
    let mut colors = PaletteMap::default();
    let leaf = |line: &String| Some(line.rsplit_once(' ')?.0.rsplit(';').next()?.to_owned());
    for leaf in folded.iter().filter_map(leaf) {
        let color = if leaf == SYSTEM_CALL { BY_CALL } else { IN_VDSO };
        colors.insert(leaf, color);
    }
    let mut options = Options::default();
    options.title = title;
    options.subtitle = Some("green: a read in the vDSO; red: a read by a system call".into());
    options.count_name = count_name.into();
    options.colors = Palette::Basic(BasicPalette::Yellow);
    options.bgcolors = Some(BackgroundColor::Flat(WHITE));
    options.palette_map = Some(&mut colors);
    // The same function has the same colour in each graph.
    options.hash = true;
    let mut svg = Vec::new();
    from_lines(&mut options, folded.iter().map(String::as_str), &mut svg).map_err(io::Error::other)?;
    String::from_utf8(svg).map_err(io::Error::other)
}
