//! `cargo bench -p vdso-time-criterion`: a routine of about 2 ns and one of about 3 ns, by each timer: in batches of thousands, where all
//! agree, and each call timed by itself.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(clippy::cast_precision_loss, reason = "the steps of a routine are few")]

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::measurement::{Measurement, WallTime};
use criterion::{BatchSize, Criterion};
use vdso_time_criterion::{CounterTime, VdsoTime};

/// So many steps, of which each waits for the one before: a cycle or two each.
#[inline]
fn chain(steps: u64, value: u64) -> u64 {
    (0..steps).fold(value, |value, step| value.rotate_left(7) ^ black_box(step))
}

/// How many steps take so long.
fn steps(nanos: f64) -> u64 {
    const MANY: u64 = 1 << 20;
    let time = |_| {
        let start = Instant::now();
        black_box(chain(black_box(MANY), 1));
        start.elapsed()
    };
    let fastest = (0..20).map(time).min().unwrap_or_default();
    (nanos * MANY as f64 / (fastest.as_secs_f64() * 1e9)).round() as u64
}

/// How a routine is called.
#[derive(Clone, Copy, PartialEq)]
enum Calls {
    Batches,
    OneByOne,
}

/// The nanoseconds of the fastest sample, for interrupts and neighbours only ever add: the least of some runs of criterion, and
/// the most.
struct Estimate {
    low: f64,
    high: f64,
}

/// The fastest of the samples that criterion wrote.
fn fastest(file: &Path) -> Result<f64, Box<dyn Error>> {
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let numbers = |name| json[name].as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64);
    let samples = numbers("times").zip(numbers("iters")).map(|(nanos, calls)| nanos / calls);
    samples.min_by(f64::total_cmp).ok_or_else(|| format!("{}: no samples", file.display()).into())
}

/// Runs of criterion for one estimate.
const RUNS: usize = 4;

/// Has criterion measure both routines, in turns.
fn measure<M: Measurement + 'static>(
    timer: impl Fn() -> M,
    name: &str,
    calls: Calls,
    routines: [u64; 2],
) -> Result<[Estimate; 2], Box<dyn Error>> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("two-and-three");
    let criterion = || {
        Criterion::default()
            .with_measurement(timer())
            .without_plots()
            .output_directory(&folder)
            .warm_up_time(Duration::from_millis(50))
            .measurement_time(Duration::from_millis(200))
            .sample_size(100)
            .nresamples(1000)
    };
    let mut estimates = routines.map(|_| Estimate { low: f64::INFINITY, high: 0.0 });
    for _ in 0..RUNS {
        for (which, (steps, estimate)) in routines.into_iter().zip(&mut estimates).enumerate() {
            let id = format!("{name}-{which}");
            // In a batch, too, each call waits for the one before.
            let mut value = 1;
            criterion().bench_function(id.as_str(), |bencher| match calls {
                Calls::Batches => bencher.iter(|| value = chain(black_box(steps), value)),
                Calls::OneByOne => {
                    let routine = |(steps, value)| chain(steps, value);
                    bencher.iter_batched(|| (steps, 1), routine, BatchSize::PerIteration);
                }
            });
            let nanos = fastest(&folder.join(id).join("new/sample.json"))?;
            (estimate.low, estimate.high) = (estimate.low.min(nanos), estimate.high.max(nanos));
        }
    }
    Ok(estimates)
}

/// Prints a line, and gives the difference that was found. `truth` is the difference by batches.
fn report(name: &str, [two, three]: &[Estimate; 2], truth: Option<f64>) -> f64 {
    let cell = |estimate: &Estimate| format!("{:.2} to {:.2}", estimate.low, estimate.high);
    let difference = three.low - two.low;
    let verdict = match truth {
        None => "the reference",
        Some(_) if two.high >= three.low => "not told apart: the runs overlap",
        Some(truth) if (difference - truth).abs() > truth / 3.0 => {
            "not told apart: the difference is another"
        }
        Some(_) => "told apart",
    };
    println!("{name:34} {:16} {:16} {difference:6.2}  {verdict}", cell(two), cell(three));
    difference
}

fn main() -> Result<(), Box<dyn Error>> {
    let routines = [steps(2.0), steps(3.0)];
    let batches = measure(|| WallTime, "batches", Calls::Batches, routines)?;
    let wall = measure(|| WallTime, "wall", Calls::OneByOne, routines)?;
    let vdso = measure(VdsoTime::new, "vdso", Calls::OneByOne, routines)?;
    let counter = CounterTime::new();
    let by_counter = counter.map(|counter| measure(|| counter, "counter", Calls::OneByOne, routines));

    println!("\nns of the fastest of 100 samples, in {RUNS} runs of criterion");
    println!(
        "{:34} {:16} {:16} difference",
        "",
        format!("{} steps", routines[0]),
        format!("{} steps", routines[1])
    );
    let truth = Some(report("batches of thousands, WallTime", &batches, None));
    report("call by call, WallTime", &wall, truth);
    report("call by call, VdsoTime", &vdso, truth);
    match by_counter {
        Ok(estimates) => {
            report("call by call, CounterTime", &estimates?, truth);
        }
        Err(status) => println!("no CounterTime here: {status}"),
    }
    println!(
        "\nTold apart: the runs do not overlap, and the difference is that of the batches within a third."
    );
    Ok(())
}
