//! `cargo bench --bench precision -- --write`: routines of a few nanoseconds, call by call with
//! each measurement, and in batches of thousands of calls, where all measurements agree.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(
    unsafe_code,
    reason = "a multiplication that is not moved and stays in a register"
)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use criterion::measurement::{Measurement, WallTime};
use vdso_time::Monotonic;
use vdso_time_benches::harness::command::Arguments;
use vdso_time_benches::harness::report::Report;
use vdso_time_benches::harness::{self, median};
use vdso_time_benches::pages::Table;
use vdso_time_criterion::{CounterTime, VdsoTime};

/// The calls of a round: of each measurement, then of the next.
const CALLS: u32 = 1000;

const COUNTER: &str = "CounterTime";
const TRUTH: &str = "no timer (batches)";
const NAMES: [&str; 4] = [TRUTH, "WallTime", "VdsoTime", COUNTER];

/// Multiplies `STEPS` times. Each step waits for the one before, for about 1 ns.
#[inline]
fn routine<const STEPS: u32>(mut value: u64) -> u64 {
    for _ in 0..STEPS {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction changes its register and the flags.
        unsafe {
            std::arch::asm!("imul {0}, {0}", inout(reg) value, options(nomem, nostack));
        };
        #[cfg(not(target_arch = "x86_64"))]
        {
            value = black_box(value.wrapping_mul(value));
        }
    }
    value
}

/// Returns the mean of calls that are measured one by one, as criterion does for
/// `BatchSize::PerIteration`.
fn each_call<const STEPS: u32, M: Measurement>(measurement: &M) -> f64 {
    let mut sum = measurement.zero();
    for _ in 0..CALLS {
        let input = black_box(3);
        let start = measurement.start();
        let output = routine::<STEPS>(input);
        let taken = measurement.end(start);
        black_box(output);
        sum = measurement.add(&sum, &taken);
    }
    measurement.to_f64(&sum) / f64::from(CALLS)
}

fn batch<const STEPS: u32>() -> f64 {
    let start = Instant::now();
    let mut value = 3;
    for _ in 0..CALLS {
        value = routine::<STEPS>(value);
    }
    black_box(value);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}

/// Returns the nanoseconds that each of the [`NAMES`] measured. Without the counter the last one is
/// missing.
fn row<const STEPS: u32>(counter: Option<&CounterTime>, rounds: usize) -> Vec<f64> {
    let vdso = VdsoTime::<Monotonic>::default();
    let mut truth = Vec::new();
    let mut wall_time = Vec::new();
    let mut vdso_time = Vec::new();
    let mut counter_time = Vec::new();
    for _ in 0..rounds {
        truth.push(batch::<STEPS>());
        wall_time.push(each_call::<STEPS, _>(&WallTime));
        vdso_time.push(each_call::<STEPS, _>(&vdso));
        if let Some(counter) = counter {
            counter_time.push(each_call::<STEPS, _>(counter));
        }
    }
    let mut medians = vec![median(&truth), median(&wall_time), median(&vdso_time)];
    if counter.is_some() {
        medians.push(median(&counter_time));
    }
    medians
}

fn report(arguments: &Arguments) -> Report {
    let counter = CounterTime::new();
    if let Err(status) = &counter {
        eprintln!("{COUNTER}: {status}");
    }
    let counter = counter.as_ref().ok();
    let rounds = arguments.effort.choose(1, 201, 2001);
    let rows = [
        row::<2>(counter, rounds),
        row::<3>(counter, rounds),
        row::<5>(counter, rounds),
        row::<10>(counter, rounds),
        row::<30>(counter, rounds),
        row::<100>(counter, rounds),
    ];
    let head = ["ns", "2 steps", "3 steps", "5", "10", "30", "100"];
    let mut table = Table::new("precision", head);
    for (at, name) in NAMES.into_iter().enumerate() {
        let mut cells = Vec::new();
        for row in &rows {
            let nanos = row.get(at);
            cells.push(nanos.map(|nanos| format!("{nanos:.1}")));
        }
        table.add(name, cells);
    }
    Report {
        tables: vec![table],
        ..Report::default()
    }
}

fn main() -> ExitCode {
    harness::main(|_| Ok(()), |arguments| Ok(report(arguments)))
}
