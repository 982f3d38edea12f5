//! What finding the vDSO's functions costs, beside the kernel selftests' parser, which checks
//! nothing. `PARSE_VDSO` names its source, tools/testing/selftests/vDSO/parse_vdso.c.

use std::ffi::{CString, c_char, c_void};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use vdso_time::Route;
use vdso_time::vdso::Vdso;
use vdso_time_benches::harness::command::run;
use vdso_time_benches::harness::document::Table;
use vdso_time_benches::harness::samples::{OURS, Samples};
use vdso_time_benches::harness::stats::median;
use vdso_time_benches::harness::{Contender, Row, Spacing};

pub const ROWS: [&str; 2] = ["find one function", "find all functions"];
pub const COLD: [&str; 2] = ["find one function, cold", "find all functions, cold"];
pub const SELFTESTS: &str = "parse_vdso.c";

/// Larger than a second-level cache.
const LARGE: usize = 16 << 20;

/// Compiles the selftests' parser. An older library is not measured instead.
pub fn build(library: &Path) -> Result<(), String> {
    let _ = fs::remove_file(library);
    let source =
        env::var_os("PARSE_VDSO").ok_or("PARSE_VDSO does not name parse_vdso.c of the kernel's source")?;
    run(Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(library).arg(source)).map(drop)
}

type Init = unsafe extern "C" fn(usize);
type Sym = unsafe extern "C" fn(*const c_char, *const c_char) -> *const c_void;

/// Returns the functions of the selftests' parser, if it was built.
fn selftests(library: &Path) -> Option<(Init, Sym)> {
    let path = CString::new(library.to_str()?).ok()?;
    // SAFETY: the library has no initialisers.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is dlopen's.
    let init = unsafe { libc::dlsym(handle, c"vdso_init_from_sysinfo_ehdr".as_ptr()) };
    // SAFETY: the handle is dlopen's.
    let sym = unsafe { libc::dlsym(handle, c"vdso_sym".as_ptr()) };
    if init.is_null() || sym.is_null() {
        return None;
    }
    // SAFETY: the function has this signature in parse_vdso.h.
    let init = unsafe { std::mem::transmute::<*mut c_void, Init>(init) };
    // SAFETY: the function has this signature in parse_vdso.h.
    let sym = unsafe { std::mem::transmute::<*mut c_void, Sym>(sym) };
    Some((init, sym))
}

/// Returns the rows: from the image's address to those of its functions.
pub fn rows(library: &Path) -> Vec<Row> {
    let Ok(vdso) = Vdso::locate() else { return Vec::new() };
    let base = vdso.base();
    let routes = vdso_time::routes();
    let routes = [routes.clock_gettime, routes.time, routes.gettimeofday, routes.clock_getres, routes.getcpu];
    let found = routes.into_iter().filter_map(|route| match route {
        Route::Vdso { symbol, version: Some(version), .. } => Some((symbol, version)),
        _ => None,
    });
    let symbols: &'static [(&str, &str)] = found.collect::<Vec<_>>().leak();
    let c_string = |text: &str| CString::new(text).unwrap_or_default().into_raw().cast_const();
    let names = symbols.iter().map(|(name, version)| (c_string(name), c_string(version)));
    let names: &'static [_] = names.collect::<Vec<_>>().leak();
    let parser = selftests(library);
    let row = |(row, count): (&str, usize)| {
        let mut row = Row::new(row, []);
        row.contenders.extend(parser.map(|(init, sym)| {
            Contender::new(SELFTESTS, move || {
                // SAFETY: the kernel's image is at `base`.
                unsafe { init(base.expose_provenance()) };
                for (name, version) in names.iter().take(count) {
                    // SAFETY: the image is parsed, and the strings live as long as the process.
                    black_box(unsafe { sym(*version, *name) });
                }
            })
        }));
        row.contenders.push(Contender::new(OURS, move || {
            // SAFETY: the kernel's image is at `base`, and stays there.
            let vdso = unsafe { Vdso::from_ptr(black_box(base)) };
            for (name, version) in symbols.iter().take(count) {
                black_box(vdso.as_ref().ok().and_then(|vdso| vdso.symbol_address(name, Some(version))));
            }
        }));
        row
    };
    ROWS.into_iter().zip([1, usize::MAX]).map(row).collect()
}

/// Returns the nanoseconds of both parsers.
pub fn table(samples: &Samples) -> Table {
    let mut table = Table::new("peers-discovery", &["ns", OURS, SELFTESTS, "/"]);
    for row in ROWS.into_iter().chain(COLD) {
        let nanos = |name| Some(format!("{:.0}", samples.nanos(row, Spacing::Isolated, name)?));
        let ratio = samples.ratio(row, Spacing::Isolated, [OURS, SELFTESTS]);
        let ratio = ratio.map(|ratio| format!("{ratio:.2}"));
        if let (Some(ours), Some(theirs), Some(ratio)) = (nanos(OURS), nanos(SELFTESTS), ratio) {
            table.rows.push(vec![row.into(), ours, theirs, ratio]);
        }
    }
    table
}

/// Prints the rows with the image in memory and the code in the third-level cache at best.
pub fn print_cold(library: &Path, times: usize) {
    let Ok(vdso) = Vdso::locate() else { return };
    let large = vec![1_u8; LARGE];
    for (row, name) in rows(library).iter().zip(COLD) {
        let mut nanos = vec![Vec::new(); row.contenders.len()];
        for _ in 0..times {
            for (contender, nanos) in row.contenders.iter().zip(&mut nanos) {
                black_box(large.iter().step_by(64).map(|&byte| u64::from(byte)).sum::<u64>());
                #[cfg(target_arch = "x86_64")]
                for line in (0..vdso.size()).step_by(64) {
                    // SAFETY: the line is in the image.
                    unsafe { std::arch::x86_64::_mm_clflush(vdso.base().wrapping_add(line)) };
                }
                let start = Instant::now();
                contender.call();
                nanos.push(start.elapsed().as_secs_f64() * 1e9);
            }
        }
        for (contender, nanos) in row.contenders.iter().zip(&nanos) {
            println!("{name}\tisolated\t{}\t{}", contender.name, median(nanos));
        }
    }
}
