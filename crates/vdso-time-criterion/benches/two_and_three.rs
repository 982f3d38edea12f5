//! `cargo bench -p vdso-time-criterion`: a routine of about 2 ns and one of about 3 ns, by each timer: in batches of thousands, where all
//! agree, and each call timed by itself.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(clippy::cast_precision_loss, reason = "the steps of a routine are few")]
#![allow(unsafe_code, reason = "a multiplication that stays where it is")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::measurement::{Measurement, WallTime};
use criterion::{BatchSize, Criterion};
use vdso_time_criterion::{CounterTime, VdsoTime};

/// So many multiplications, of which each waits for the one before, and no branch. In assembly they stay between the two readings of the
/// clock, and in a register: a black box's way through memory takes longer than a multiplication, and not always as long.
#[inline]
fn chain<const STEPS: u32>(value: u64) -> u64 {
    (0..STEPS).fold(value, |value, _| multiply(value))
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn multiply(mut value: u64) -> u64 {
    // SAFETY: the instruction changes its register, and the flags.
    unsafe { std::arch::asm!("imul {0}, {0}", inout(reg) value, options(nomem, nostack)) };
    value
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn multiply(mut value: u64) -> u64 {
    // SAFETY: the instruction changes its register.
    unsafe {
        std::arch::asm!("mul {0}, {0}, {0}", inout(reg) value, options(nomem, nostack, preserves_flags))
    };
    value
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn multiply(value: u64) -> u64 {
    std::hint::black_box(value.wrapping_mul(value))
}

/// How a routine is called.
#[derive(Clone, Copy, PartialEq)]
enum Calls {
    Batches,
    OneByOne,
}

/// The median of the samples that criterion wrote.
fn sampled(file: &Path) -> Result<f64, Box<dyn Error>> {
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let numbers = |name| json[name].as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64);
    let samples = numbers("times").zip(numbers("iters")).map(|(nanos, calls)| nanos / calls);
    Ok(median(samples.collect()))
}

/// Runs of criterion for each routine.
const RUNS: usize = 15;

/// The nanoseconds of each run, the median of its samples: of both routines, in turns.
type Runs = Vec<[f64; 2]>;

/// Has criterion measure both routines.
fn measure<M: Measurement + 'static>(
    timer: impl Fn() -> M,
    name: &str,
    calls: Calls,
) -> Result<Runs, Box<dyn Error>> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("two-and-three");
    let criterion = || {
        Criterion::default()
            .with_measurement(timer())
            .without_plots()
            .output_directory(&folder)
            .warm_up_time(Duration::from_millis(10))
            .measurement_time(Duration::from_millis(60))
            .sample_size(50)
            .nresamples(1000)
    };
    // About 2 ns and about 3 ns, where a cycle is a third of one.
    let two = || run(criterion(), &folder, &format!("{name}-2"), calls, chain::<2>);
    let three = || run(criterion(), &folder, &format!("{name}-3"), calls, chain::<3>);
    (0..RUNS).map(|_| Ok([two()?, three()?])).collect()
}

/// Has criterion measure a routine.
fn run<M: Measurement + 'static>(
    mut criterion: Criterion<M>,
    folder: &Path,
    id: &str,
    calls: Calls,
    routine: impl Fn(u64) -> u64 + Copy,
) -> Result<f64, Box<dyn Error>> {
    // In a batch, too, each call waits for the one before.
    let mut value = 3;
    criterion.bench_function(id, |bencher| match calls {
        Calls::Batches => bencher.iter(|| value = routine(value)),
        Calls::OneByOne => bencher.iter_batched(|| 3, routine, BatchSize::PerIteration),
    });
    sampled(&folder.join(id).join("new/sample.json"))
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints a line, and gives the difference that was found. `truth` is that of the batches.
fn report(name: &str, runs: &Runs, truth: Option<f64>) -> f64 {
    let [two, three] = [0, 1].map(|which| median(runs.iter().map(|run| run[which]).collect()));
    let differences = || runs.iter().map(|[two, three]| three - two);
    let difference = median(differences().collect());
    let truth = truth.unwrap_or(difference);
    let right = differences().filter(|found| (found - truth).abs() <= truth / 2.0).count();
    println!(
        "{name:31} {two:8.2} {three:8.2}   {difference:+7.2} = {:+4.0}%   {right} of {RUNS}",
        100.0 * difference / two
    );
    difference
}

fn main() -> Result<(), Box<dyn Error>> {
    let batches = measure(|| WallTime, "batches", Calls::Batches)?;
    let wall = measure(|| WallTime, "wall", Calls::OneByOne)?;
    let vdso = measure(VdsoTime::new, "vdso", Calls::OneByOne)?;
    let counter = CounterTime::new();
    let by_counter = counter.map(|counter| measure(|| counter, "counter", Calls::OneByOne));

    println!("\nns, the median of {RUNS} runs of criterion\n");
    println!("{:31} {:>8} {:>8}   the difference     right in", "", "2 steps", "3 steps");
    let truth = Some(report("batches of thousands, WallTime", &batches, None));
    report("call by call, WallTime", &wall, truth);
    report("call by call, VdsoTime", &vdso, truth);
    match by_counter {
        Ok(runs) => {
            report("call by call, CounterTime", &runs?, truth);
        }
        Err(status) => println!("no CounterTime here: {status}"),
    }
    println!(
        "\nRight: the difference between two runs, one after the other, is that of the batches within a half."
    );
    Ok(())
}
