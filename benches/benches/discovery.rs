//! `cargo bench --bench discovery`: what finding the vDSO's functions costs, beside goblin; and the first call of a fresh process.
//!
//! Nothing of the crate runs before `main`: all that is ever paid is in the first calls.

#![allow(unsafe_code, reason = "the live image as bytes, for goblin, and a call of libc")]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds are far below 2^53")]

use std::fs;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::process::ExitCode;
use std::slice;
use std::time::Instant;

use goblin::elf::Elf;
use vdso_time::arch::{Abi, NATIVE};
use vdso_time::elf::Image;
use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, Timespec, syscall};
use vdso_time_benches::harness::arguments::{self, Arguments};
use vdso_time_benches::harness::report::{Bar, Report, Table};
use vdso_time_benches::harness::samples::{self, Samples, Statistic};
use vdso_time_benches::harness::stats::{median, minimum};
use vdso_time_benches::harness::{Contender, Row, Spacing, process};

/// The row of first calls, and what asks a child for one.
const FIRST: &str = "first call of a process";

/// The five names that this architecture's vDSO is asked for first.
fn names(abi: &'static Abi) -> [&'static str; 5] {
    abi.functions().map(|(_, function)| function.candidates.first().map_or("", |candidate| candidate.name))
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

/// The work by which the functions are found; none where there is no vDSO.
fn discovery() -> Vec<Row> {
    let (Ok(vdso), Some(abi)) = (Vdso::locate(), NATIVE) else { return Vec::new() };
    let Some(bytes) = mapping(vdso.base()) else { return Vec::new() };
    let (names, version) = (names(abi), Some(abi.version));
    let parse = vec![
        Contender::new("goblin", move || drop(black_box(Elf::parse(bytes)))),
        Contender::new("vdso", move || {
            let _ = black_box(Image::parse(bytes));
        }),
    ];
    let resolve = vec![
        Contender::new("goblin", move || {
            let elf = Elf::parse(bytes).expect("goblin reads the image");
            for name in names {
                black_box(
                    elf.dynsyms.iter().find(|symbol| elf.dynstrtab.get_at(symbol.st_name) == Some(name)),
                );
            }
        }),
        Contender::new("vdso", move || {
            let image = Image::parse(bytes).expect("an image that was located");
            for name in names {
                black_box(image.symbol(name, version));
            }
        }),
    ];
    let locate = vec![Contender::new("vdso", move || {
        let vdso = Vdso::locate().expect("it was located before");
        for name in names {
            black_box(vdso.symbol(name, version));
        }
    })];
    [("parse", parse), ("parse, five symbols", resolve), ("locate, five symbols", locate)]
        .map(|(name, contenders)| Row { name: name.into(), contenders })
        .into()
}

/// Those whose first call is timed.
const CALLERS: [&str; 4] = ["vdso-time", "libc", "std", "system call"];

/// The nanoseconds of the first call of a process, and the page faults among them, which are most of it.
///
/// The time is the kernel's, read by a system call, which touches nothing that the call has yet to touch. What the reading itself
/// takes is subtracted.
fn first_call(caller: &str) -> [f64; 2] {
    let read = || syscall::clock_gettime(ClockId::MONOTONIC_RAW).map_or(0, Timespec::as_nanos);
    let since = |start| (read() - start) as f64;
    let nothing: Vec<f64> = (0..15).map(|_| since(read())).collect();
    let faults = page_faults();
    let start = read();
    match caller {
        "vdso-time" => drop(black_box(vdso_time::clock_gettime(ClockId::MONOTONIC).ok())),
        "libc" => libc_clock_gettime(),
        "std" => drop(black_box(Instant::now())),
        _ => drop(black_box(syscall::clock_gettime(ClockId::MONOTONIC).ok())),
    }
    let taken = since(start);
    [taken - median(&nothing), (page_faults() - faults) as f64]
}

fn page_faults() -> libc::c_long {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: libc writes the usage there.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: numbers, written or zero.
    unsafe { usage.assume_init() }.ru_minflt
}

fn libc_clock_gettime() {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: libc writes the time there.
    black_box(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr()) });
}

fn child(asked: &[String]) -> Result<(), String> {
    match asked {
        [first, name] if first == FIRST => {
            let [nanos, faults] = first_call(name);
            println!("{nanos}\t{faults}");
            Ok(())
        }
        _ => samples::print(&discovery(), asked),
    }
}

fn parent(arguments: &Arguments) -> Result<(), String> {
    let mut report = Report::new("discovery");
    find(arguments, &mut report)?;
    if arguments.wants(FIRST) {
        start(arguments, &mut report)?;
    }
    report.finish(arguments, env!("CARGO_TARGET_TMPDIR"))
}

fn find(arguments: &Arguments, report: &mut Report) -> Result<(), String> {
    let rows: Vec<Row> = discovery().into_iter().filter(|row| arguments.wants(&row.name)).collect();
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let samples =
        Samples::collect(arguments.effort.choose(1, 9, 25), arguments.effort.choose(1, 100, 400), &names)?;
    let head = ["work", "vdso-time, ns", "goblin, ns", "ratio", "control"].map(str::to_string).to_vec();
    let mut lines = Vec::new();
    for row in names {
        let nanos = |name| samples.nanos(row, Spacing::BackToBack, name, Statistic::Median);
        let ratio = samples.ratio(row, Spacing::BackToBack, ["vdso", "goblin"], Statistic::Median);
        let control = samples.control(row, Spacing::BackToBack, Statistic::Median);
        let text = |value: Option<f64>, decimals| {
            value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
        };
        lines.push(vec![
            row.into(),
            text(nanos("vdso"), 1),
            text(nanos("goblin"), 1),
            text(ratio, 3),
            text(control, 3),
        ]);
        for (name, label) in [("vdso", "vdso-time"), ("goblin", "goblin")] {
            let bar = |nanos| Bar { plot: "discovery", group: row.into(), name: label, nanos };
            report.bars.extend(nanos(name).map(bar));
        }
    }
    report.tables.push(Table { name: "discovery", head, rows: lines });
    Ok(())
}

fn start(arguments: &Arguments, report: &mut Report) -> Result<(), String> {
    let mut samples = CALLERS.map(|_| [Vec::new(), Vec::new()]);
    for _ in 0..arguments.effort.choose(1, 31, 101) {
        for (caller, samples) in CALLERS.iter().zip(&mut samples) {
            let text = process::child(&[FIRST, caller])?;
            for (number, samples) in text.trim().split('\t').zip(samples) {
                samples.push(number.parse().map_err(|error| format!("{number}: {error}"))?);
            }
        }
    }
    let head = ["first clock_gettime of a process", "median, ns", "fastest, ns", "page faults"];
    let head = head.map(str::to_string).to_vec();
    let mut rows = Vec::new();
    for (name, [nanos, faults]) in CALLERS.into_iter().zip(&samples) {
        let numbers = [median(nanos), minimum(nanos), median(faults)].map(|number| format!("{number:.0}"));
        rows.push([vec![name.into()], numbers.to_vec()].concat());
        report.bars.push(Bar { plot: "discovery", group: FIRST.into(), name, nanos: median(nanos) });
    }
    report.tables.push(Table { name: "first", head, rows });
    Ok(())
}

fn main() -> ExitCode {
    arguments::main(parent, child)
}
