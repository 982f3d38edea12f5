//! What finding the vDSO's functions costs, with caches hot and cold.

#![allow(unsafe_code, reason = "the live image as bytes, and parsers that take a pointer")]

use std::ffi::CStr;
use std::hint::black_box;
use std::time::Instant;
use std::{fs, slice};

use goblin::elf::Elf;
use vdso_time::arch::{Abi, NATIVE};
use vdso_time::vdso::Vdso;
use vdso_time_benches::harness::samples::CONTROL;
use vdso_time_benches::harness::stats::median;
use vdso_time_benches::harness::{Contender, Row, Spacing};

use crate::rows::OURS;
use crate::walk::Walk;

/// The rows with hot caches; the others have the same names and `COLD` behind.
pub const ROWS: [&str; 2] = ["find one function", "find five functions"];
/// Behind the name of a row whose caches are cold.
pub const COLD: &str = ", cold";

const SELFTESTS: &str = "selftests' parser";

fn names(abi: &'static Abi) -> Vec<&'static str> {
    let functions = [&abi.clock_gettime, &abi.time, &abi.gettimeofday, &abi.clock_getres, &abi.getcpu];
    functions.iter().filter_map(|function| Some(function.candidates.first()?.name)).collect()
}

/// The mapping that begins at an address, to its end: goblin wants the section headers, which no program header covers.
fn mapping(base: *const u8) -> Option<&'static [u8]> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let end = maps.lines().find_map(|line| {
        let (start, rest) = line.split_once('-')?;
        (address(start)? == base.addr()).then(|| address(rest.split(' ').next()?))?
    })?;
    // SAFETY: the mapping reaches that far, and nobody here takes the vDSO away.
    Some(unsafe { slice::from_raw_parts(base, end - base.addr()) })
}

fn leaked(name: &str) -> &'static CStr {
    Box::leak(std::ffi::CString::new(name).expect("no NUL in a symbol's name").into_boxed_c_str())
}

/// From the image's address to those of its functions; none where there is no vDSO.
pub fn rows() -> Vec<Row> {
    let (Ok(vdso), Some(abi)) = (Vdso::locate(), NATIVE) else { return Vec::new() };
    let all: &'static [&str] = names(abi).leak();
    let rows = ROWS.iter().zip([&all[..1], all]);
    rows.map(|(name, wanted)| Row { name: (*name).into(), contenders: contenders(vdso.base(), abi, wanted) })
        .collect()
}

fn contenders(base: *const u8, abi: &'static Abi, names: &'static [&str]) -> Vec<Contender> {
    let version = Some(abi.version);
    let find = move |vdso: Vdso<'_>| {
        for name in names {
            black_box(vdso.symbol(name, version));
        }
    };
    let mut contenders = vec![Contender::new("vdso-time, locate()", move || {
        find(Vdso::locate().expect("it was located before"));
    })];
    let c_version = leaked(abi.version);
    let c_names: &'static [&CStr] = names.iter().map(|name| leaked(name)).collect::<Vec<_>>().leak();
    // SAFETY: it is the kernel's image.
    if unsafe { Walk::new(base) }.is_some() {
        contenders.push(Contender::new(SELFTESTS, move || {
            // SAFETY: as above.
            if let Some(walk) = unsafe { Walk::new(base) } {
                for name in c_names {
                    // SAFETY: as above.
                    black_box(unsafe { walk.symbol(c_version, name) });
                }
            }
        }));
    }
    // It looks for its four functions, all or none.
    contenders.push(Contender::new("linux-raw-vdso", move || {
        // SAFETY: it is the kernel's image.
        let _ = black_box(unsafe { linux_raw_vdso::Vdso::from_ptr(base.cast()) });
    }));
    if let Some(bytes) = mapping(base) {
        contenders.push(Contender::new("goblin", move || {
            let elf = Elf::parse(bytes).expect("goblin reads the image");
            for name in names {
                let symbol = elf.dynsyms.iter().find(|it| elf.dynstrtab.get_at(it.st_name) == Some(name));
                black_box(symbol.map(|symbol| symbol.st_value));
            }
        }));
    }
    contenders.push(Contender::new(OURS, move || {
        // SAFETY: it is the kernel's image.
        find(unsafe { Vdso::from_ptr(base) }.expect("it was located before"));
    }));
    contenders
}

/// Larger than a second-level cache, code and all.
const LARGE: usize = 8 << 20;

/// Prints the median nanoseconds of a call that finds the image in memory and its own code in the third-level cache at best, less those
/// of a call that does nothing.
pub fn print_cold(calls: usize) {
    let Ok(vdso) = Vdso::locate() else { return };
    let bytes = mapping(vdso.base()).unwrap_or_default();
    let large = vec![1_u8; LARGE];
    for row in rows() {
        let mut contenders: Vec<_> = row.contenders.iter().map(|each| (each.name, each)).collect();
        let Some((name, ours)) = contenders.pop() else { continue };
        let nothing = Contender::new("", || ());
        contenders.extend([(CONTROL[0], ours), (CONTROL[1], ours), ("", &nothing)]);
        let mut nanos = vec![Vec::new(); contenders.len()];
        for call in 0..calls {
            for turn in 0..contenders.len() {
                let at = (call + turn) % contenders.len();
                // What cannot be cooled, the predictors and the first-level cache of code, is the same whoever's turn it is.
                for contender in &row.contenders {
                    contender.run(Spacing::Isolated, 1);
                }
                cool(bytes, &large);
                // The timer and the loop are not what is measured.
                let _ = nothing.time(Spacing::Isolated, 1);
                let start = Instant::now();
                contenders[at].1.run(Spacing::Isolated, 1);
                nanos[at].push(start.elapsed().as_secs_f64() * 1e9);
            }
        }
        let print = |contender: &str, nanos: f64| {
            println!("{}{COLD}\t{}\t{contender}\t{nanos}", row.name, Spacing::Isolated.name());
        };
        let nanos: Vec<f64> = nanos.iter().map(|nanos| median(nanos)).collect();
        let [.., again, nothing] = nanos.as_slice() else { continue };
        contenders.pop();
        for ((contender, _), nanos) in contenders.iter().zip(&nanos) {
            print(contender, nanos - nothing);
        }
        print(name, again - nothing);
    }
}

fn cool(image: &[u8], large: &[u8]) {
    black_box(large.iter().step_by(64).map(|&byte| u64::from(byte)).sum::<u64>());
    #[cfg(target_arch = "x86_64")]
    for line in image.chunks(64) {
        // SAFETY: the line is there.
        unsafe { std::arch::x86_64::_mm_clflush(line.as_ptr()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = image;
}
