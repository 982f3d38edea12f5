//! vdso-time beside every other way to read a clock: one command builds all, measures all, and says which claims hold.

mod bars;
mod deviation;
mod discovery;
mod figures;
mod foreign;
mod instructions;
mod platform;
mod programs;
mod rows;
mod scaling;
#[cfg(target_arch = "x86_64")]
use test_support::stepper;
mod tables;
mod walk;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use bars::Verdict;
use foreign::Foreign;
use instructions::{Counts, STEP};
use vdso_time_benches::harness::arguments::{Arguments, CHILD, Effort};
use vdso_time_benches::harness::report::Report;
use vdso_time_benches::harness::samples::{self, Samples};
use vdso_time_benches::harness::{Row, Spacing, machine, process};

const USAGE: &str = "\
vdso-time beside every other way to read a clock.

Usage: cargo run --release --manifest-path benches/peers/Cargo.toml -- [--quick] [--check] [--write]

  --quick   within a minute, once all is built, and without the build times
  --check   status 1 if a bar is missed, and which
  --write   put what was found into BENCHMARKS.md and docs/benchmarks
";

/// How much is measured.
struct Plan {
    processes: usize,
    rounds: usize,
    /// Calls with cold caches, a process.
    cold: usize,
    /// Batches of a thread beside another.
    batches: usize,
    /// How long the counter clocks are compared.
    deviation: Duration,
    /// Starts of each program.
    starts: usize,
    /// How often a noisy row is measured again.
    tries: usize,
    is_full: bool,
}

const QUICK: Plan = Plan {
    processes: 7,
    rounds: 48,
    cold: 25,
    batches: 50,
    deviation: Duration::from_secs(2),
    starts: 31,
    tries: 2,
    is_full: false,
};

const FULL: Plan = Plan {
    processes: 11,
    rounds: 240,
    cold: 101,
    batches: 200,
    deviation: Duration::from_secs(30),
    starts: 101,
    tries: 5,
    is_full: true,
};

/// What asks a child for calls with cold caches, and for two threads.
const COLD: &str = "cold";
const THREADS: &str = "threads";

fn all_rows() -> Vec<Row> {
    let mut all = rows::rows();
    all.extend(discovery::rows());
    all
}

fn child(asked: &[String]) -> Result<(), String> {
    let number = |text: &String| text.parse().map_err(|error| format!("{text}: {error}"));
    match asked {
        [what, name] if what == STEP => {
            all_rows().iter().filter(|row| row.name == *name).for_each(instructions::child);
        }
        [what, calls] if what == COLD => discovery::print_cold(number(calls)?),
        [what, batches] if what == THREADS => scaling::print(number(batches)?),
        _ => {
            deviation::settle();
            samples::print(&all_rows(), asked)?;
        }
    }
    Ok(())
}

/// Has some rows measured: a process of each program after the other, so often.
fn collect(plan: &Plan, names: &[&str], foreign: &[Foreign]) -> Result<Samples, String> {
    let rounds = plan.rounds.to_string();
    let (cold, batches, offsets) = (plan.cold.to_string(), plan.batches.to_string(), foreign::offsets());
    let asked = |kind: &str| names.iter().any(|name| name.contains(kind));
    let mut samples = Samples::default();
    for _ in 0..plan.processes {
        samples.add(&process::child(&[&[rounds.as_str()], names].concat())?)?;
        for it in foreign {
            samples.add(&foreign::run(Command::new(&it.program).args([&rounds, &offsets]).args(names))?)?;
        }
        if asked(discovery::COLD) {
            samples.add(&process::child(&[COLD, &cold])?)?;
        }
        if asked(bars::SCALING) {
            samples.add(&process::child(&[THREADS, &batches])?)?;
        }
    }
    Ok(samples)
}

/// Whether a row's noise is too much for its bars, or for its ratio to `direct`.
fn is_noisy(samples: &Samples, row: &str) -> bool {
    let ratio = |spacing| matches!(figures::told(samples, row, spacing, rows::OURS), figures::Told::Noisy);
    let has_direct = samples.of(row, Spacing::Isolated, rows::DIRECT).is_some();
    bars::is_noisy(samples, row) || has_direct && Spacing::ALL.into_iter().any(ratio)
}

fn target_folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Says on the standard error what is done now, for it takes minutes.
fn stage(start: Instant, what: &str) {
    eprintln!("[{:3.0} s] {what}", start.elapsed().as_secs_f64());
}

fn measure(plan: &Plan) -> Result<(Report, Samples), String> {
    let start = Instant::now();
    let (target, clocks, all) = (target_folder(), rows::rows(), all_rows());
    let folder = foreign::folder(&target)?;
    stage(start, "building the contenders of other toolchains, and a program for each crate");
    let (foreign, skipped) = foreign::build(&folder);
    for why in &skipped {
        eprintln!("{why}");
    }
    let programs = programs::build(&folder, plan.is_full)?;

    stage(start, "counting instructions");
    let counts = Counts::collect(&clocks, &foreign).unwrap_or_else(|error| {
        eprintln!("instructions are not counted: {error}");
        Counts::default()
    });

    let cold = discovery::ROWS.map(|row| format!("{row}{}", discovery::COLD));
    let mut names: Vec<&str> = all.iter().map(|row| row.name.as_str()).collect();
    names.extend(cold.iter().map(String::as_str).chain([bars::SCALING]));
    stage(start, "measuring");
    let mut samples = collect(plan, &names, &foreign)?;
    for _ in 0..plan.tries {
        let noisy: Vec<&str> = names.iter().copied().filter(|row| is_noisy(&samples, row)).collect();
        if noisy.is_empty() {
            break;
        }
        stage(start, &format!("too noisy, measured again: {}", noisy.join("; ")));
        samples.replace(collect(plan, &noisy, &foreign)?);
    }
    stage(start, "starting programs");
    let (starts, faults) = programs::start(&programs, plan.starts)?;
    stage(start, "comparing the counter clocks with the kernel's");
    let deviation = deviation::measure(plan.deviation);
    stage(start, "done");

    let mut report = Report::new("peers");
    report.tables = vec![
        tables::calls(&clocks, &samples, Spacing::Isolated, "peers-isolated"),
        tables::calls(&clocks, &samples, Spacing::BackToBack, "peers-back-to-back"),
        tables::instructions(&clocks, &counts),
        tables::clocks(&clocks, &samples, &counts),
    ];
    report.tables.extend(deviation);
    report.tables.extend([
        tables::scaling(&samples),
        tables::discovery(&samples),
        programs::table(&programs, &starts, &faults),
    ]);
    report.bars = tables::plots(&clocks, &samples);
    samples.replace(starts);
    report.tables.extend([bars::table(&samples), tables::versions(&foreign)]);
    report.notes = skipped;
    let machine: Vec<String> = machine::describe().into_iter().map(|(_, value)| value).collect();
    let effort = if plan.is_full { "in full" } else { "with `--quick`" };
    report.notes.push(format!("Measured {effort} on {}", machine.join("; ")));
    Ok((report, samples))
}

fn parent(arguments: &[String]) -> Result<ExitCode, String> {
    let (mut plan, mut is_checked, mut is_written) = (FULL, false, false);
    for argument in arguments {
        match argument.as_str() {
            "--quick" => plan = QUICK,
            "--check" => is_checked = true,
            "--write" => is_written = true,
            "--help" => {
                print!("{USAGE}");
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(format!("unknown argument `{other}`\n\n{USAGE}")),
        }
    }
    let (report, samples) = measure(&plan)?;
    let complete = Arguments { effort: Effort::Full, filters: Vec::new() };
    let target = target_folder();
    report.finish(&complete, &target.join("tmp").to_string_lossy())?;
    if is_written {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut xtask = Command::new(env!("CARGO"));
        xtask.current_dir(root).env("CARGO_TARGET_DIR", target);
        foreign::run(xtask.args(["xtask", "bench-table", "--write", "peers"]))?;
    }
    for line in bars::with(&samples, &[Verdict::Noisy, Verdict::Absent]) {
        eprintln!("{line}");
    }
    let missed = bars::with(&samples, &[Verdict::Missed]);
    for line in &missed {
        eprintln!("{line}");
    }
    Ok(if is_checked && !missed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((first, asked)) if first == CHILD => child(asked).map(|()| ExitCode::SUCCESS),
        _ => parent(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}
