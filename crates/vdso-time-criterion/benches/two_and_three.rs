//! `cargo bench -p vdso-time-criterion`: a routine of about 2 ns and one of about 3 ns with each
//! measurement: in batches of thousands, where all agree, and call by call as `iter_batched` does.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(clippy::cast_precision_loss, reason = "the calls are far fewer than 2^53")]
#![allow(unsafe_code, reason = "a multiplication that stays in its place and in a register")]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::asm;
use std::hint::black_box;

use criterion::measurement::{Measurement, WallTime};
use vdso_time_criterion::{CounterTime, VdsoTime};

const RUNS: usize = 15;
/// Of a run, whose result is their median: interrupted samples do not count.
const SAMPLES: usize = 50;
/// Of a sample.
const CALLS: u32 = 2_000;

/// Multiplies `STEPS` times. Each step waits for the one before, for about 1 ns.
#[inline]
fn routine<const STEPS: u32>(value: u64) -> u64 {
    (0..STEPS).fold(value, |value, _| multiply(value))
}

#[inline]
fn multiply(mut value: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction changes its register and the flags.
    unsafe {
        asm!("imul {0}, {0}", inout(reg) value, options(nomem, nostack));
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction changes its register.
    unsafe {
        asm!("mul {0}, {0}, {0}", inout(reg) value, options(nomem, nostack));
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        value = black_box(value.wrapping_mul(value));
    }
    value
}

/// Returns the nanoseconds of a call, from one measurement of all calls.
fn batch<M: Measurement>(measurement: &M, routine: impl Fn(u64) -> u64) -> f64 {
    let start = measurement.start();
    black_box((0..CALLS).fold(3, |value, _| routine(value)));
    measurement.to_f64(&measurement.end(start)) / f64::from(CALLS)
}

/// Returns the mean nanoseconds of a call, from a measurement of each.
fn call_by_call<M: Measurement>(measurement: &M, routine: impl Fn(u64) -> u64) -> f64 {
    let sum = (0..CALLS).fold(measurement.zero(), |sum, _| {
        let value = black_box(3);
        let start = measurement.start();
        let value = routine(value);
        let end = measurement.end(start);
        black_box(value);
        measurement.add(&sum, &end)
    });
    measurement.to_f64(&sum) / f64::from(CALLS)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs both routines in turns, prints a line, and returns the median difference. A run is right if
/// its difference is `truth` to within a half.
fn report(name: &str, truth: Option<f64>, two: impl Fn() -> f64, three: impl Fn() -> f64) -> f64 {
    let run = |sample: &dyn Fn() -> f64| median((0..SAMPLES).map(|_| sample()));
    let runs: Vec<[f64; 2]> = (0..RUNS).map(|_| [run(&two), run(&three)]).collect();
    let difference = median(runs.iter().map(|[two, three]| three - two));
    let truth = truth.unwrap_or(difference);
    let right = runs.iter().filter(|[two, three]| (three - two - truth).abs() <= truth / 2.0).count();
    let [two, three] = [0, 1].map(|at| median(runs.iter().map(|run| run[at])));
    println!("{name:29} {two:8.2} {three:8.2} {difference:+11.2}   {right:2} of {RUNS} right");
    difference
}

fn report_calls<M: Measurement>(name: &str, truth: f64, measurement: &M) {
    let two = || call_by_call(measurement, routine::<2>);
    report(name, Some(truth), two, || call_by_call(measurement, routine::<3>));
}

fn main() {
    println!("{:29} {:>8} {:>8} {:>11}", "ns, the median of the runs", "2 steps", "3 steps", "difference");
    let two = || batch(&WallTime, routine::<2>);
    let truth = report("batches, WallTime", None, two, || batch(&WallTime, routine::<3>));
    report_calls("call by call, WallTime", truth, &WallTime);
    report_calls("call by call, VdsoTime", truth, &VdsoTime::new());
    match CounterTime::new() {
        Ok(counter) => report_calls("call by call, CounterTime", truth, &counter),
        Err(status) => println!("call by call, CounterTime: {status}"),
    }
}
