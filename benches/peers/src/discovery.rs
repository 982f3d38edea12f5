//! The cost of finding the vDSO's functions, compared with the parser of the kernel's selftests,
//! which checks nothing. `get-parse_vdso` fetches its source.

use std::hint::black_box;

use vdso_time::vdso::Vdso;
use vdso_time_benches::calls;
use vdso_time_benches::harness::samples::{OURS, Samples};
use vdso_time_benches::harness::{Contender, Row, Spacing};
use vdso_time_benches::pages::Table;

/// Finding one function.
pub const ONE: &str = "find one function";
/// Finding all functions.
pub const ALL: &str = "find all functions";
pub const SELFTESTS: &str = "parse_vdso.c";

/// The name and the version of a symbol.
type Symbol = (&'static str, &'static str);

/// Returns the selftests' parser, if it is here.
#[cfg(parse_vdso)]
fn selftests(base: *const u8, symbols: &[Symbol]) -> Vec<Contender> {
    use std::ffi::{CString, c_char, c_void};

    unsafe extern "C" {
        fn vdso_init_from_sysinfo_ehdr(base: usize);
        fn vdso_sym(version: *const c_char, name: *const c_char) -> *const c_void;
    }

    let string = |text: &str| {
        let string = CString::new(text).unwrap_or_default();
        string.into_raw().cast_const()
    };
    let mut names = Vec::new();
    for (name, version) in symbols {
        let name = string(name);
        let version = string(version);
        names.push((version, name));
    }
    let names: &'static [_] = names.leak();
    vec![Contender::new(SELFTESTS, move || {
        // SAFETY: the kernel's image is at `base`.
        unsafe { vdso_init_from_sysinfo_ehdr(base.expose_provenance()) };
        for (version, name) in names {
            // SAFETY: the image is parsed, and the strings live as long as the process.
            black_box(unsafe { vdso_sym(*version, *name) });
        }
    })]
}

#[cfg(not(parse_vdso))]
fn selftests(_: *const u8, _: &[Symbol]) -> Vec<Contender> {
    Vec::new()
}

/// Returns the rows: from the image's address to the addresses of its functions.
pub fn rows() -> Vec<Row> {
    let Ok(vdso) = Vdso::locate() else {
        return Vec::new();
    };
    let base = vdso.base();
    let symbols: &'static [Symbol] = calls::symbols().leak();
    let first = symbols.get(..1).unwrap_or_default();
    let one = row(ONE, base, first);
    let all = row(ALL, base, symbols);
    vec![one, all]
}

fn row(name: &str, base: *const u8, symbols: &'static [Symbol]) -> Row {
    let theirs = selftests(base, symbols);
    let ours = Contender::new(OURS, move || {
        // SAFETY: the kernel's image is at `base`, and stays there.
        let vdso = unsafe { Vdso::from_ptr(black_box(base)) };
        let Ok(vdso) = vdso else {
            return;
        };
        for (name, version) in symbols {
            let address = vdso.symbol_address(name, Some(version));
            black_box(address);
        }
    });
    Row::new(name, theirs).with([ours])
}

/// Returns the nanoseconds of both parsers.
pub fn table(samples: &Samples) -> Table {
    let head = ["ns", OURS, SELFTESTS, "/ parse_vdso.c"];
    let mut table = Table::new("peers-discovery", head);
    for row in [ONE, ALL] {
        let ours = samples.isolated(row, OURS, 0);
        let theirs = samples.isolated(row, SELFTESTS, 0);
        let ratio = samples.ratio(row, Spacing::Isolated, [OURS, SELFTESTS]);
        let text = ratio.map(|ratio| format!("{ratio:.2}"));
        table.add(row, [ours, theirs, text]);
    }
    table
}
