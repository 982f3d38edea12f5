//! `cargo bench --bench paths`: each call through the vDSO, by libc, by std and by the system call.
//!
//! The program ends with status 1 if the path through the vDSO is not faster than the system call
//! although the doctor proves that it stays in user space.

#[path = "config/mod.rs"]
mod config;

use std::fs;
use std::process::ExitCode;
use std::time::SystemTime;

use config::Timer;
use criterion::measurement::Measurement as _;
use criterion::{Criterion, Throughput};
use vdso_doctor::{Place, Read};
use vdso_time::ClockId;
use vdso_time_benches::calls;
use vdso_time_benches::harness::Row;
use vdso_time_benches::harness::document::Table;
use vdso_time_benches::harness::samples::OURS;

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
const SYSCALL: &str = "syscall";

/// The names of the groups, the reads that the doctor checks, and the contenders.
fn groups() -> Vec<(String, Read, Row)> {
    let resolution = ClockId::MONOTONIC;
    let calls = [
        (Read::Time, calls::time()),
        (Read::Gettimeofday, calls::gettimeofday()),
        (Read::ClockGetres(resolution), calls::clock_getres("MONOTONIC", resolution)),
        (Read::Getcpu, calls::getcpu()),
    ];
    let calls = calls.into_iter().map(|(read, row)| (read.function().into(), read, row));
    let clocks = CLOCKS.into_iter().map(|(name, clock)| {
        let row = calls::clock_gettime(name, clock);
        (format!("clock_gettime/{name}"), Read::ClockGettime(clock), row)
    });
    calls.chain(clocks).collect()
}

fn measure(criterion: &mut Criterion<Timer>, name: &str, row: &Row) {
    let timer = config::timer();
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    for contender in &row.contenders {
        let name = match contender.name {
            OURS => VDSO,
            calls::SYSCALL => SYSCALL,
            other => other,
        };
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|calls| {
                let start = timer.start();
                contender.call(calls);
                timer.end(start)
            });
        });
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
    for (group, read, _) in groups() {
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
    for (name, _, row) in groups() {
        measure(&mut criterion, &name, &row);
    }
    criterion.final_summary();
    let slow = report(start);
    for line in &slow {
        eprintln!("not faster than the system call: {line}");
    }
    if slow.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
