//! `cargo bench --bench paths`: each call through the vDSO, libc and std, and through the system
//! call.
//!
//! The program ends with status 1 if the path through the vDSO is not faster than the system call
//! although the doctor proves that it stays in user space.

#![allow(
    clippy::cast_precision_loss,
    reason = "the calls of a loop are far below 2^53"
)]

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use vdso_doctor::{Call, Location};
use vdso_time::ClockId;
use vdso_time_benches::calls::{self, SYSCALL};
use vdso_time_benches::harness::load::Load;
use vdso_time_benches::harness::samples::{OURS, Samples};
use vdso_time_benches::harness::{Row, Spacing, machine};
use vdso_time_benches::pages::Table;

const CLOCKS: [(&str, ClockId); 6] = [
    ("MONOTONIC", ClockId::MONOTONIC),
    ("REALTIME", ClockId::REALTIME),
    ("MONOTONIC_COARSE", ClockId::MONOTONIC_COARSE),
    ("BOOTTIME", ClockId::BOOTTIME),
    ("TAI", ClockId::TAI),
    // The vDSO has no such clock, and makes the system call.
    ("PROCESS_CPUTIME", ClockId::PROCESS_CPUTIME),
];

/// criterion's loops have no fences.
const SPACING: Spacing = Spacing::BackToBack;

/// A call that criterion measures.
struct Group {
    name: String,
    /// The call that the doctor checks.
    call: Call,
    row: Row,
}

impl Group {
    fn new(call: Call, row: Row) -> Self {
        Self {
            name: call.function().into(),
            call,
            row,
        }
    }
}

fn groups() -> Vec<Group> {
    let clock = ClockId::MONOTONIC;
    let mut groups = vec![
        Group::new(Call::Time, calls::time()),
        Group::new(Call::Gettimeofday, calls::gettimeofday()),
        Group::new(
            Call::ClockGetres(clock),
            calls::clock_getres("MONOTONIC", clock),
        ),
        Group::new(Call::Getcpu, calls::getcpu()),
    ];
    for (name, clock) in CLOCKS {
        groups.push(Group {
            name: format!("clock_gettime/{name}"),
            call: Call::ClockGettime(clock),
            row: calls::clock_gettime(name, clock),
        });
    }
    groups
}

/// Adds the nanoseconds of each contender's calls, one value for each loop that criterion asks for.
fn measure(criterion: &mut Criterion, samples: &mut Samples, name: &str, row: &Row) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    for contender in &row.contenders {
        group.bench_function(contender.name, |bencher| {
            bencher.iter_custom(|calls| {
                let start = Instant::now();
                contender.call(calls);
                let time = start.elapsed();
                samples.push(
                    [name, SPACING.name(), contender.name],
                    time.as_secs_f64() * 1e9 / calls as f64,
                );
                time
            });
        });
    }
    group.finish();
}

/// Prints the ratios of this run. Returns a line for each call that is too slow.
fn report(samples: &Samples) -> Vec<String> {
    let head = [
        "group",
        "vdso-time / system call",
        "vdso-time / libc",
        "answered in",
    ];
    let mut table = Table::new("paths", head);
    let mut slow = Vec::new();
    let mut findings = Vec::new();
    for Group { name, call, .. } in groups() {
        if !is_measured(samples, &name) {
            continue;
        }
        let nanos = |contender| samples.nanos(&name, SPACING, contender);
        let (Some(vdso), Some(syscall)) = (nanos(OURS), nanos(SYSCALL)) else {
            continue;
        };
        let mut location = Location::UserSpace;
        if let Err(finding) = vdso_doctor::check(&[call]) {
            location = finding.location;
            findings.push(format!("{name}: {finding}"));
        }
        if location == Location::UserSpace && vdso >= syscall {
            slow.push(format!(
                "{name}: {vdso:.1} ns through the vDSO, {syscall:.1} ns through the system call"
            ));
        }
        let location = match location {
            Location::UserSpace => "user space",
            Location::Kernel => "the kernel",
            _ => "unknown",
        };
        let ratio = |other: f64| format!("{:.3}", vdso / other);
        let libc = nanos("libc").map(ratio);
        table.add(&name, [Some(ratio(syscall)), libc, Some(location.into())]);
    }
    if !table.rows.is_empty() {
        println!("{table}");
    }
    for finding in findings {
        println!("{finding}");
    }
    slow
}

/// Returns whether the group has figures: `cargo bench -- --test` runs each call once, and a filter
/// leaves some out.
fn is_measured(samples: &Samples, group: &str) -> bool {
    match samples.of(group, SPACING, OURS) {
        Some(nanos) => nanos.len() > 5,
        None => false,
    }
}

/// Returns criterion with the options of the command line. The whole run takes some minutes; in an
/// emulator it takes less than one.
fn criterion() -> Criterion {
    let mut criterion = Criterion::default();
    if env::var_os("CRITERION_HOME").is_none() {
        // A guest has no cargo that would name the directory.
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("criterion");
        criterion = criterion.output_directory(&directory);
    }
    let [warm_up, measurement] = if machine::is_emulated() {
        // The analysis is emulated as well.
        criterion = criterion.without_plots().nresamples(1000).sample_size(20);
        [100, 300]
    } else {
        [500, 2000]
    };
    criterion
        .warm_up_time(Duration::from_millis(warm_up))
        .measurement_time(Duration::from_millis(measurement))
        .configure_from_args()
}

fn main() -> ExitCode {
    let load = Load::start();
    let mut criterion = criterion();
    let mut samples = Samples::default();
    for Group { name, row, .. } in groups() {
        measure(&mut criterion, &mut samples, &name, &row);
    }
    criterion.final_summary();
    let slow = report(&samples);
    if let Some(others) = load.others() {
        println!("busy: {others}");
    }
    for line in &slow {
        eprintln!("not faster than the system call: {line}");
    }
    if slow.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
