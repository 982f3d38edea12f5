//! `cargo bench --bench time_now`: a time as Go's `time.Now` has it, of one `CLOCK_REALTIME` and one `CLOCK_MONOTONIC`, in the
//! layout of benchstat.
//!
//! A sample is one process, as it is one run of a Go benchmark: the median of its batches, lest it tell what else the machine did
//! meanwhile. The processes of the contenders take turns.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use vdso_time_benches::harness::arguments::{self, Arguments};
use vdso_time_benches::harness::report::{Bar, Report, Table};
use vdso_time_benches::harness::stats::{mann_whitney, mean, median, percent_around_mean, without_outliers};
use vdso_time_benches::harness::{Contender, Spacing, nanos_per_call, process};
use vdso_time_benches::rows::time_now;

/// The calls of a batch.
const CALLS: u64 = 1000;

fn child(asked: &[String]) -> Result<(), String> {
    let [name, millis] = asked else { return Err(format!("{asked:?}: not a contender and a time")) };
    let row = time_now();
    let contender = row.contender(name).ok_or_else(|| format!("{name}: no such contender"))?;
    let length = Duration::from_millis(millis.parse().map_err(|error| format!("{millis}: {error}"))?);
    let (start, mut batches) = (Instant::now(), Vec::new());
    while start.elapsed() < length {
        let batch = contender.time(Spacing::BackToBack, CALLS);
        batches.push(nanos_per_call(batch, CALLS));
    }
    println!("{}", median(&batches));
    Ok(())
}

fn parent(arguments: &Arguments) -> Result<(), String> {
    let row = time_now();
    if !arguments.wants(&row.name) {
        return Ok(());
    }
    let processes = arguments.effort.choose(1, 12, 40);
    let millis = arguments.effort.choose("1", "100", "500");
    let mut samples = vec![Vec::new(); row.contenders.len()];
    for _ in 0..processes {
        for (contender, samples) in row.contenders.iter().zip(&mut samples) {
            let nanos = process::child(&[contender.name, millis])?;
            samples.push(nanos.trim().parse::<f64>().map_err(|error| format!("{nanos}: {error}"))?);
        }
    }
    let samples: Vec<Vec<f64>> = samples.iter().map(|samples| without_outliers(samples)).collect();
    let (new, olds) = samples.split_last().ok_or("no contenders")?;
    let mut lines = Vec::new();
    for (old, contender) in olds.iter().zip(&row.contenders) {
        let name = format!("{}/{}", row.name, contender.name);
        lines.push(vec![name, time(old), time(new), delta(old, new)]);
    }
    let head = ["name", "old time/op", "new time/op", "delta"].map(str::to_string).to_vec();
    let mut report = Report::new("time_now");
    report.tables.push(Table { name: "time_now", head, rows: lines });
    report.bars = row.contenders.iter().zip(&samples).map(bar).collect();
    report.finish(arguments, env!("CARGO_TARGET_TMPDIR"))
}

fn bar((contender, samples): (&Contender, &Vec<f64>)) -> Bar {
    let name = match contender.name {
        "vdso" => "vdso-time",
        "syscall" => "system call",
        name => name,
    };
    Bar { plot: "time_now", group: "TimeNow".into(), name, nanos: mean(samples) }
}

fn time(samples: &[f64]) -> String {
    format!("{:.1}ns ±{:2.0}%", mean(samples), percent_around_mean(samples))
}

fn delta(old: &[f64], new: &[f64]) -> String {
    let p = mann_whitney(old, new);
    let change = 100.0 * (mean(new) / mean(old) - 1.0);
    let change = if p < 0.05 { format!("{change:+.2}%") } else { "~".into() };
    format!("{change}  (p={p:.3} n={}+{})", old.len(), new.len())
}

fn main() -> ExitCode {
    arguments::main(parent, child)
}
