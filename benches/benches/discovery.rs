//! `cargo bench --bench discovery`: how long it takes to find the vDSO's functions, with hot and cold
//! caches, and how long the first call of a process takes.

#![allow(unsafe_code, reason = "the image as bytes, parsers that take a pointer, getrusage(2)")]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds are far below 2^53")]

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::process::ExitCode;
use std::time::Instant;
use std::{fs, slice};

use goblin::elf::Elf;
use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, Route, Timespec, syscall};
use vdso_time_benches::calls::{self, FUNCTIONS, SYSCALL};
use vdso_time_benches::harness::bars::{self, Bar, isolated};
use vdso_time_benches::harness::command::{self, Arguments};
use vdso_time_benches::harness::document::{Report, Table};
use vdso_time_benches::harness::samples::{self, OURS, Samples};
use vdso_time_benches::harness::stats::median;
use vdso_time_benches::harness::{Contender, Row, Spacing};

const HOT: &str = "find five functions";
const COLD: &str = "find five functions, cold";
const FIRST: &str = "first call";
const ALL_FIVE: &str = "all five";

const LOCATE: &str = "vdso-time, locate()";
const RAW_VDSO: &str = "linux-raw-vdso";
/// The finders, in the order of the columns.
const FINDERS: [&str; 4] = [OURS, LOCATE, RAW_VDSO, "goblin"];
/// Whose first call is timed.
const CALLERS: [&str; 4] = [OURS, "libc", "std", SYSCALL];

/// linux-raw-vdso checks nothing and needs section headers, so this crate's parser is slower.
const BARS: &[Bar] = &[
    isolated(HOT, RAW_VDSO, 2.00),
    isolated(HOT, "goblin", 0.30),
    isolated(COLD, RAW_VDSO, 2.00),
    isolated(COLD, "goblin", 0.30),
];

/// The mapping of the image. goblin needs the section headers, which no program header covers.
fn mapping(base: *const u8) -> Option<&'static [u8]> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let end = line.split_once('-')?.1.split(' ').next()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    // SAFETY: the kernel's line says that the mapping reaches to `end`; this program keeps the vDSO.
    Some(unsafe { slice::from_raw_parts(base, end.checked_sub(base.addr())?) })
}

/// The finders, from the image's address to those of its functions.
fn row() -> Option<Row> {
    let vdso = Vdso::locate().ok()?;
    let (base, bytes) = (vdso.base(), mapping(vdso.base())?);
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
    let mut row = Row::new(HOT, []);
    // It looks for its own four functions.
    row.contenders.push(Contender::new(RAW_VDSO, move || {
        // SAFETY: the kernel's image is at `base`.
        let _ = black_box(unsafe { linux_raw_vdso::Vdso::from_ptr(base.cast()) });
    }));
    row.contenders.push(Contender::new("goblin", move || {
        let elf = Elf::parse(bytes).expect("the kernel's image is well-formed");
        for (name, _) in symbols {
            let symbol = elf.dynsyms.iter().find(|it| elf.dynstrtab.get_at(it.st_name) == Some(name));
            black_box(symbol.map(|symbol| symbol.st_value));
        }
    }));
    row.contenders.push(Contender::new(LOCATE, move || find(Vdso::locate().expect("it is mapped"))));
    row.contenders.push(Contender::new(OURS, move || {
        // SAFETY: the kernel's image is at `base`.
        find(unsafe { Vdso::from_ptr(base) }.expect("it is mapped"));
    }));
    Some(row)
}

/// Prints the median time of each finder with cold caches: the image is in memory, and the code in
/// the third-level cache at best.
fn print_cold(row: &Row, calls: usize) {
    let image = Vdso::locate().ok().and_then(|vdso| mapping(vdso.base())).unwrap_or_default();
    // Larger than a second-level cache.
    let large = vec![1_u8; 8 << 20];
    let empty = Contender::new("", || ());
    let last = row.contenders.last();
    let contenders: Vec<&Contender> = row.contenders.iter().chain(last).chain([&empty]).collect();
    let mut nanos = vec![Vec::new(); contenders.len()];
    for turn in 0..calls * contenders.len() {
        let at = turn % contenders.len();
        // The predictors stay warm for all alike.
        row.contenders.iter().for_each(|contender| contender.run(Spacing::Isolated, 1));
        cool(image, &large);
        // The timer and the loop are warm too.
        empty.run(Spacing::Isolated, 1);
        let start = Instant::now();
        contenders[at].run(Spacing::Isolated, 1);
        nanos[at].push(start.elapsed().as_secs_f64() * 1e9);
    }
    let mut nanos: Vec<f64> = nanos.iter().map(|nanos| median(nanos)).collect();
    let nothing = nanos.pop().unwrap_or_default();
    let names = row.contenders.iter().map(|contender| contender.name).chain(["measured again"]);
    for (name, nanos) in names.zip(nanos) {
        println!("{COLD}\tisolated\t{name}\t{}", nanos - nothing);
        if name == OURS {
            println!("{COLD}\tisolated\tmeasured\t{}", nanos - nothing);
        }
    }
}

fn cool(image: &[u8], large: &[u8]) {
    black_box(large.iter().step_by(64).map(|&byte| u64::from(byte)).sum::<u64>());
    #[cfg(target_arch = "x86_64")]
    for line in image.chunks(64) {
        // SAFETY: the line is in the image.
        unsafe { std::arch::x86_64::_mm_clflush(line.as_ptr()) };
    }
    black_box(image);
}

/// Prints the time of the first call of this process, and its page faults. The kernel measures the
/// time, by a system call, so that the vDSO's pages are not touched.
fn print_first(function: &str, caller: &str) {
    let rows = calls::callers();
    let rows = rows.iter().filter(|row| FUNCTIONS.contains(&row.name.as_str()));
    let rows = rows.filter(|row| [row.name.as_str(), ALL_FIVE].contains(&function));
    let contenders: Vec<&Contender> = rows.filter_map(|row| row.contender(caller)).collect();
    if contenders.len() < if function == ALL_FIVE { FUNCTIONS.len() } else { 1 } {
        return; // std has two of the functions
    }
    let now = || syscall::clock_gettime(ClockId::MONOTONIC_RAW).map_or(0, Timespec::as_nanos);
    let nothing: Vec<f64> = (0..15).map(|_| -(now() - now()) as f64).collect();
    let faults = page_faults();
    let start = now();
    for contender in contenders {
        contender.run(Spacing::BackToBack, 1);
    }
    let nanos = (now() - start) as f64 - median(&nothing);
    println!("{FIRST}: {function}\tisolated\t{caller}\t{nanos}");
    println!("{FIRST}: {function}\tisolated\t{caller}, faults\t{}", page_faults() - faults);
}

fn page_faults() -> libc::c_long {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for the usage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: the numbers are written, or zero.
    unsafe { usage.assume_init() }.ru_minflt
}

fn child(asked: &[String]) -> Result<(), String> {
    if let [first, function, caller] = asked {
        if first == FIRST {
            print_first(function, caller);
            return Ok(());
        }
    }
    let Some(row) = row() else { return Ok(()) };
    if asked.iter().any(|name| name == COLD) {
        let rounds: usize = asked[0].parse().map_err(|error| format!("{}: {error}", asked[0]))?;
        print_cold(&row, rounds.div_ceil(2));
    }
    samples::print(&[row], asked)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let names: Vec<String> =
        [HOT, COLD].map(String::from).into_iter().filter(|it| arguments.wants(it)).collect();
    let is_noisy = |samples: &Samples, row: &str| bars::is_noisy(BARS, samples, row);
    let samples = Samples::collect(arguments, &names, Samples::add_child, is_noisy)?;
    let (table, missed) = bars::table("discovery-bars", BARS, &samples);
    let first = if arguments.wants(FIRST) { first(arguments)? } else { Samples::default() };
    let tables = vec![find_table(&samples), first_table(&first), table];
    Ok(Report { tables, missed, ..Report::default() })
}

fn first(arguments: &Arguments) -> Result<Samples, String> {
    let mut samples = Samples::default();
    for _ in 0..arguments.effort.choose(1, 15, 101) {
        for function in FUNCTIONS.into_iter().chain([ALL_FIVE]) {
            CALLERS.iter().try_for_each(|caller| samples.add_child(&[FIRST, function, caller]))?;
        }
    }
    Ok(samples)
}

fn find_table(samples: &Samples) -> Table {
    let mut table = Table::new("discovery", &[&["ns"], FINDERS.as_slice()].concat());
    for row in [HOT, COLD] {
        let nanos = FINDERS.map(|finder| samples.nanos(row, Spacing::Isolated, finder));
        if nanos[0].is_some() {
            let cells = nanos.map(|nanos| nanos.map_or_else(String::new, |nanos| format!("{nanos:.0}")));
            table.rows.push([vec![row.into()], cells.to_vec()].concat());
        }
    }
    table
}

fn first_table(samples: &Samples) -> Table {
    let mut table = Table::new("first", &[&["ns (page faults)"], CALLERS.as_slice()].concat());
    for function in FUNCTIONS.into_iter().chain([ALL_FIVE]) {
        let row = format!("{FIRST}: {function}");
        let of = |name: &str| samples.nanos(&row, Spacing::Isolated, name);
        let cell =
            |caller: &str| Some(format!("{:.0} ({:.0})", of(caller)?, of(&format!("{caller}, faults"))?));
        if of(OURS).is_some() {
            let cells = CALLERS.map(|caller| cell(caller).unwrap_or_default());
            table.rows.push([vec![row], cells.to_vec()].concat());
        }
    }
    table
}

fn main() -> ExitCode {
    command::main(&[], child, parent)
}
