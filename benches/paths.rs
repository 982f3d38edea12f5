//! `cargo bench --bench paths`: each call through the vDSO, by libc, by std and by the system call.
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

/// Returns the names of the groups, the reads that the doctor checks, and the contenders.
fn groups() -> Vec<(String, Call, Row)> {
    let resolution = ClockId::MONOTONIC;
    let calls = [
        (Call::Time, calls::time()),
        (Call::Gettimeofday, calls::gettimeofday()),
        (
            Call::ClockGetres(resolution),
            calls::clock_getres("MONOTONIC", resolution),
        ),
        (Call::Getcpu, calls::getcpu()),
    ];
    let calls = calls
        .into_iter()
        .map(|(read, row)| (read.function().into(), read, row));
    let clocks = CLOCKS.into_iter().map(|(name, clock)| {
        let row = calls::clock_gettime(name, clock);
        (
            format!("clock_gettime/{name}"),
            Call::ClockGettime(clock),
            row,
        )
    });
    calls.chain(clocks).collect()
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
    let mut table = Table::new(
        "paths",
        [
            "group",
            "vdso-time / system call",
            "vdso-time / libc",
            "answered in",
        ],
    );
    let (mut slow, mut findings) = (Vec::new(), Vec::new());
    for (group, read, _) in groups() {
        // `cargo bench -- --test` runs each call once, and a filter leaves some out.
        let is_measured = samples
            .of(&group, SPACING, OURS)
            .is_some_and(|nanos| nanos.len() > 5);
        let median = |name| samples.nanos(&group, SPACING, name).filter(|_| is_measured);
        let (Some(vdso), Some(syscall)) = (median(OURS), median(SYSCALL)) else {
            continue;
        };
        let finding = vdso_doctor::check(&[read]).err();
        let location = finding
            .as_ref()
            .map_or(Location::UserSpace, |finding| finding.location);
        if location == Location::UserSpace && vdso >= syscall {
            slow.push(format!(
                "{group}: {vdso:.1} ns by the vDSO, {syscall:.1} ns by the system call"
            ));
        }
        findings.extend(finding.map(|finding| format!("{group}: {finding}")));
        let location = match location {
            Location::UserSpace => "user space",
            Location::Kernel => "the kernel",
            _ => "unknown",
        };
        let ratios =
            [Some(syscall), median("libc")].map(|other| Some(format!("{:.3}", vdso / other?)));
        table.add(&group, ratios.into_iter().chain([Some(location.into())]));
    }
    if !table.rows.is_empty() {
        println!("{table}");
    }
    for finding in findings {
        println!("{finding}");
    }
    slow
}

/// Returns criterion with the options of the command line. The whole run takes some minutes; in an
/// emulator it takes less than one.
fn criterion() -> Criterion {
    let mut criterion = Criterion::default();
    if env::var_os("CRITERION_HOME").is_none() {
        // A guest has no cargo that would name the folder.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("criterion");
        criterion = criterion.output_directory(&folder);
    }
    let [warm_up, measurement] = if machine::is_emulated() {
        // The analysis is emulated, too.
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
    let (load, mut criterion) = (Load::start(), criterion());
    let mut samples = Samples::default();
    for (name, _, row) in groups() {
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
