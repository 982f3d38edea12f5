//! `cargo bench --bench paths`: each call through the vDSO, by libc, by std and by the system call.
//!
//! The program ends with status 1 if the path through the vDSO is not faster than the system call
//! although the doctor proves that it stays in user space.

#[path = "config/mod.rs"]
mod config;

use std::fs;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use config::Timer;
use criterion::{Criterion, Throughput};
use vdso_doctor::{Place, Read};
use vdso_time::{ClockId, syscall};
use vdso_time_benches::calls::keep::Keep as _;
use vdso_time_benches::calls::libc_calls;
use vdso_time_benches::harness::document::Table;

const CLOCKS: [(&str, ClockId); 6] = [
    ("MONOTONIC", ClockId::MONOTONIC),
    ("REALTIME", ClockId::REALTIME),
    ("MONOTONIC_COARSE", ClockId::MONOTONIC_COARSE),
    ("BOOTTIME", ClockId::BOOTTIME),
    ("TAI", ClockId::TAI),
    // The vDSO has no such clock, and makes the system call.
    ("PROCESS_CPUTIME", ClockId::PROCESS_CPUTIME),
];

const VDSO: &str = "vdso";
const LIBC: &str = "libc";
const STD: &str = "std";
const SYSCALL: &str = "syscall";

/// The names of the groups.
fn groups() -> Vec<(String, Read)> {
    let clocks = CLOCKS.map(|(name, clock)| (format!("clock_gettime/{name}"), Read::ClockGettime(clock)));
    let calls = [Read::Time, Read::Gettimeofday, Read::ClockGetres(ClockId::MONOTONIC), Read::Getcpu];
    calls.map(|read| (read.function().into(), read)).into_iter().chain(clocks).collect()
}

fn measure(criterion: &mut Criterion<Timer>, name: &str, read: Read) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    macro_rules! contenders {
        ($($contender:expr => $call:expr;)+) => {
            {$(group.bench_function($contender, |bencher| bencher.iter(move || $call));)+}
        };
    }
    match read {
        Read::Time => contenders! {
            VDSO => vdso_time::time();
            LIBC => libc_calls::time();
            STD => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            SYSCALL => syscall::time().keep();
        },
        Read::Gettimeofday => contenders! {
            VDSO => vdso_time::gettimeofday().keep();
            LIBC => libc_calls::gettimeofday();
            SYSCALL => syscall::gettimeofday().keep();
        },
        Read::Getcpu => contenders! {
            VDSO => vdso_time::getcpu().keep();
            LIBC => libc_calls::getcpu();
            SYSCALL => syscall::getcpu().keep();
        },
        Read::ClockGetres(clock) => contenders! {
            VDSO => vdso_time::clock_getres(clock).keep();
            LIBC => libc_calls::clock_getres(clock);
            SYSCALL => syscall::clock_getres(clock).keep();
        },
        Read::ClockGettime(clock) => {
            contenders! {
                VDSO => vdso_time::clock_gettime(clock).keep();
                LIBC => libc_calls::clock_gettime(clock);
                SYSCALL => syscall::clock_gettime(clock).keep();
            }
            match clock {
                ClockId::MONOTONIC => contenders! { STD => Instant::now().keep(); },
                ClockId::REALTIME => contenders! { STD => SystemTime::now().keep(); },
                _ => {}
            }
        }
        _ => unreachable!("`groups` has no other read"),
    }
    group.finish();
}

/// The median nanoseconds that criterion wrote since `start`.
fn median(group: &str, contender: &str, start: SystemTime) -> Option<f64> {
    let folder = config::reports().join(group.replace('/', "_")).join(contender);
    let file = folder.join("new/estimates.json");
    let written = fs::metadata(&file).and_then(|it| it.modified()).ok()?;
    let estimates: serde_json::Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    estimates["median"]["point_estimate"].as_f64().filter(|_| written >= start)
}

/// Prints the ratios of this run. Returns a line for each call that is too slow.
fn report(start: SystemTime) -> Vec<String> {
    let mut table = Table::new("paths", &["group", "vdso / syscall", "vdso / libc", "answered in"]);
    let (mut slow, mut findings) = (Vec::new(), Vec::new());
    for (group, read) in groups() {
        let median = |contender| median(&group, contender, start);
        let (Some(vdso), Some(syscall)) = (median(VDSO), median(SYSCALL)) else { continue };
        let finding = vdso_doctor::check(&[read]).err();
        let place = finding.as_ref().map_or(Place::UserSpace, |finding| finding.place);
        if place == Place::UserSpace && vdso >= syscall {
            slow.push(format!("{group}: {vdso:.1} ns by the vDSO, {syscall:.1} ns by the system call"));
        }
        findings.extend(finding.map(|finding| format!("{group}: {finding}")));
        let libc = median(LIBC).map_or("-".into(), |libc| format!("{:.3}", vdso / libc));
        let place = match place {
            Place::UserSpace => "user space",
            Place::Kernel => "the kernel",
            _ => "unknown",
        };
        table.rows.push(vec![group, format!("{:.3}", vdso / syscall), libc, place.into()]);
    }
    if !table.rows.is_empty() {
        println!("{}", table.markdown());
        for finding in findings {
            println!("{finding}");
        }
        println!("report: {}", config::reports().join("report/index.html").display());
    }
    slow
}

fn main() -> ExitCode {
    let start = SystemTime::now();
    let mut criterion = config::criterion();
    for (name, read) in groups() {
        measure(&mut criterion, &name, read);
    }
    criterion.final_summary();
    let slow = report(start);
    for line in &slow {
        eprintln!("not faster than the system call: {line}");
    }
    if slow.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
