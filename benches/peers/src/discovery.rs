//! What finding the vDSO's functions costs, beside the kernel selftests' parser, which checks
//! nothing. `get-parse_vdso` fetches its source.

use std::hint::black_box;
use std::time::Instant;

use vdso_time::vdso::Vdso;
use vdso_time_benches::calls;
use vdso_time_benches::harness::samples::{OURS, Samples, say};
use vdso_time_benches::harness::{Contender, Row, Spacing, median};
use vdso_time_benches::pages::Table;

pub const ROWS: [&str; 2] = ["find one function", "find all functions"];
pub const COLD: [&str; 2] = ["find one function, cold", "find all functions, cold"];
pub const SELFTESTS: &str = "parse_vdso.c";

/// Larger than a second-level cache.
const LARGE: usize = 16 << 20;

/// Returns the selftests' parser, if it is here.
#[cfg(parse_vdso)]
fn selftests(base: *const u8, symbols: &[(&str, &str)], count: usize) -> Vec<Contender> {
    use std::ffi::{CString, c_char, c_void};

    unsafe extern "C" {
        fn vdso_init_from_sysinfo_ehdr(base: usize);
        fn vdso_sym(version: *const c_char, name: *const c_char) -> *const c_void;
    }

    let string = |text: &str| {
        CString::new(text)
            .unwrap_or_default()
            .into_raw()
            .cast_const()
    };
    let names = symbols
        .iter()
        .take(count)
        .map(|(name, version)| (string(version), string(name)));
    let names: &'static [_] = names.collect::<Vec<_>>().leak();
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
fn selftests(_: *const u8, _: &[(&str, &str)], _: usize) -> Vec<Contender> {
    Vec::new()
}

/// Returns the rows: from the image's address to those of its functions.
pub fn rows() -> Vec<Row> {
    let Ok(vdso) = Vdso::locate() else {
        return Vec::new();
    };
    let base = vdso.base();
    let symbols: &'static [(&str, &str)] = calls::symbols().leak();
    let row = |(row, count): (&str, usize)| {
        let ours = Contender::new(OURS, move || {
            // SAFETY: the kernel's image is at `base`, and stays there.
            let vdso = unsafe { Vdso::from_ptr(black_box(base)) };
            for (name, version) in symbols.iter().take(count) {
                black_box(
                    vdso.as_ref()
                        .ok()
                        .and_then(|vdso| vdso.symbol_address(name, Some(version))),
                );
            }
        });
        Row::new(row, selftests(base, symbols, count)).with([ours])
    };
    ROWS.into_iter().zip([1, usize::MAX]).map(row).collect()
}

/// Returns the nanoseconds of both parsers.
pub fn table(samples: &Samples) -> Table {
    const PARSERS: [&str; 2] = [OURS, SELFTESTS];
    let mut table = Table::new(
        "peers-discovery",
        [&["ns"], PARSERS.as_slice(), &["/ parse_vdso.c"]].concat(),
    );
    for row in ROWS.into_iter().chain(COLD) {
        let ratio = samples.ratio(row, Spacing::Isolated, [OURS, SELFTESTS]);
        let nanos = PARSERS.map(|parser| samples.isolated(row, parser, 0));
        table.add(
            row,
            nanos
                .into_iter()
                .chain([ratio.map(|ratio| format!("{ratio:.2}"))]),
        );
    }
    table
}

/// Prints the rows for cold caches, without the time of an empty call: the image is in memory, the
/// code in the third-level cache at best. The TLB stays warm, because the linker decides which
/// contender shares a page with its caller and would need no page walk.
pub fn print_cold(times: usize) {
    let Ok(vdso) = Vdso::locate() else { return };
    let mut large = Vec::<u8>::with_capacity(LARGE);
    let start = large
        .as_ptr()
        .wrapping_add(large.as_ptr().align_offset(4096))
        .cast_mut();
    // SAFETY: the advice is for the vector's own pages, and does not change them.
    unsafe { libc::madvise(start.cast(), LARGE - 4096, libc::MADV_HUGEPAGE) };
    large.resize(LARGE, 1);
    for (row, name) in rows().into_iter().zip(COLD) {
        let mut contenders = row.contenders;
        contenders.push(Contender::new("", || ()));
        let mut nanos = vec![Vec::new(); contenders.len()];
        for round in 0..times {
            for turn in 0..contenders.len() {
                let at = (round + turn) % contenders.len();
                black_box(
                    large
                        .iter()
                        .step_by(64)
                        .map(|&byte| u64::from(byte))
                        .sum::<u64>(),
                );
                flush(&vdso);
                let start = Instant::now();
                contenders[at].call(1);
                nanos[at].push(start.elapsed().as_secs_f64() * 1e9);
            }
        }
        let nanos: Vec<f64> = nanos.iter().map(|nanos| median(nanos)).collect();
        let empty = nanos.last().copied().unwrap_or(0.0);
        for (contender, nanos) in contenders.iter().zip(nanos).take(contenders.len() - 1) {
            say(name, contender.name, nanos - empty);
        }
    }
}

/// Removes the image from all caches.
#[cfg(target_arch = "x86_64")]
fn flush(vdso: &Vdso<'_>) {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};

    for line in (0..vdso.size()).step_by(64) {
        // SAFETY: the line is in the image.
        unsafe { _mm_clflush(vdso.base().wrapping_add(line)) };
    }
    // Without it the flushes go on while the first contender is measured.
    // SAFETY: every CPU of this architecture has the instruction.
    unsafe { _mm_mfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn flush(_: &Vdso<'_>) {}
