//! `cargo bench --bench discovery`: how long it takes to find the vDSO's functions.

#![allow(unsafe_code, reason = "parsers that take a pointer")]

use std::hint::black_box;
use std::process::ExitCode;

use vdso_time::Route;
use vdso_time::vdso::Vdso;
use vdso_time_benches::harness::bars::{self, Bar, isolated};
use vdso_time_benches::harness::command::{self, Arguments};
use vdso_time_benches::harness::document::{Report, Table};
use vdso_time_benches::harness::samples::{self, OURS, Samples};
use vdso_time_benches::harness::{Contender, Row, Spacing};

const FIND: &str = "find the functions";

const LOCATE: &str = "vdso-time, locate()";
const RAW_VDSO: &str = "linux-raw-vdso";
/// The finders, in the order of the columns.
const FINDERS: [&str; 3] = [OURS, LOCATE, RAW_VDSO];

/// linux-raw-vdso checks nothing and needs section headers, so this crate's parser is slower.
const BARS: &[Bar] = &[isolated(FIND, RAW_VDSO, 2.00)];

/// The finders, from the image's address to those of its functions.
fn row() -> Option<Row> {
    let vdso = Vdso::locate().ok()?;
    let base = vdso.base();
    let symbols: Vec<(&str, Option<&str>)> = vdso_time::routes()
        .functions()
        .iter()
        .filter_map(|(_, route)| match route {
            Route::Vdso { symbol, version, .. } => Some((*symbol, *version)),
            _ => None,
        })
        .collect();
    let symbols: &'static [_] = symbols.leak();
    let find = move |vdso: Vdso<'_>| {
        for &(name, version) in symbols {
            black_box(vdso.symbol_address(name, version));
        }
    };
    let mut row = Row::new(FIND, []);
    // It looks for its own four functions.
    row.contenders.push(Contender::new(RAW_VDSO, move || {
        // SAFETY: the kernel's image is at `base`.
        let _ = black_box(unsafe { linux_raw_vdso::Vdso::from_ptr(base.cast()) });
    }));
    row.contenders.push(Contender::new(LOCATE, move || find(Vdso::locate().expect("it is mapped"))));
    row.contenders.push(Contender::new(OURS, move || {
        // SAFETY: the kernel's image is at `base`.
        find(unsafe { Vdso::from_ptr(base) }.expect("it is mapped"));
    }));
    Some(row)
}

fn child(asked: &[String]) -> Result<(), String> {
    let Some(row) = row() else { return Ok(()) };
    samples::print(&[row], asked)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let names = [FIND.to_string()];
    let is_noisy = |samples: &Samples, row: &str| bars::is_noisy(BARS, samples, row);
    let samples = Samples::collect(arguments, &names, Samples::add_child, is_noisy)?;
    let (table, missed) = bars::table("discovery-bars", BARS, &samples);
    Ok(Report { tables: vec![find_table(&samples), table], missed, ..Report::default() })
}

fn find_table(samples: &Samples) -> Table {
    let mut table = Table::new("discovery", &[&["ns"], FINDERS.as_slice()].concat());
    let nanos = FINDERS.map(|finder| samples.nanos(FIND, Spacing::Isolated, finder));
    if nanos[0].is_some() {
        let cells = nanos.map(|nanos| nanos.map_or_else(String::new, |nanos| format!("{nanos:.0}")));
        table.rows.push([vec![FIND.into()], cells.to_vec()].concat());
    }
    table
}

fn main() -> ExitCode {
    command::main(&[], child, parent)
}
