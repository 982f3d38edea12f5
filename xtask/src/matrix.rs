//! `cargo xtask matrix`: all tests and the doctor on every architecture, emulator and kernel of the table.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::bench_table::fill;
use crate::combinations::{COMBINATIONS, NATIVE_ALONE, SKIPPED};
use crate::matrix_page::{Row, costs, failures, page, table};
use crate::on::{Setup, TIMEOUT_VARIABLE};
use crate::place::{Place, Runner};
use crate::process::{output, stdout, step};
use crate::report::Report;
use crate::{Error, cache, workspace};

const DOCUMENT: &str = "docs/MATRIX.md";

/// Has the table of costs, between these.
const BENCHMARKS: &str = "BENCHMARKS.md";
const MARKERS: [&str; 2] = ["<!-- matrix", "<!-- /matrix -->"];

/// What the kernel runner leaves with when the fault is not a program's.
const GUEST_FAILED: &str = "125";

/// Each guest has half a gigabyte.
const MOST_AT_ONCE: usize = 8;

/// For a boot with all programs, on a busy machine.
const TIMEOUT: &str = "1200";

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let (options, names): (Vec<_>, Vec<_>) = arguments.iter().partition(|word| word.starts_with("--"));
    let (mut quick, mut write) = (false, false);
    for option in options {
        match option.as_str() {
            "--quick" => quick = true,
            "--write" => write = true,
            other => return Err(crate::unknown_argument(other)),
        }
    }
    let mut places = Vec::new();
    for name in names {
        places.push(Place::parse(name).map_err(Error::Usage)?);
    }
    if places.is_empty() {
        for (name, _) in COMBINATIONS.iter().filter(|(_, in_quick)| *in_quick || !quick) {
            match Place::parse(name) {
                Ok(place) => places.push(place),
                Err(why) => step(&format!("{name:<26} not run here: {why}")),
            }
        }
    }
    let rows = run_places(&places);
    let failures = failures(&rows);
    println!("{}\n{}", table(&rows, ""), costs(&rows, ""));
    print!("{failures}");
    if write {
        rewrite(DOCUMENT, |old| Ok(page(&table(&rows, old), &failures)))?;
        let section = |old: &str| format!("{}\nPrinted by `cargo xtask matrix`.\n", costs(&rows, old));
        rewrite(BENCHMARKS, |old| fill(old, MARKERS, |_| Ok(section(old))))?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes a document anew, of which the old text may have parts that stay.
fn rewrite(document: &str, new: impl FnOnce(&str) -> Result<String, String>) -> Result<(), String> {
    let file = workspace::root().join(document);
    let old = if file.exists() {
        fs::read_to_string(&file).map_err(|error| cache::at(&file, &error))?
    } else {
        String::new()
    };
    cache::write(&file, &new(&old)?)
}

/// A guest of one processor keeps one of the machine's busy: as many run at a time.
fn run_places(places: &[Place]) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut rows = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = places.get(index) else { return rows };
            let row = row(place);
            step(&row.summary());
            rows.push((index, row));
        }
    };
    let workers = thread::available_parallelism().map_or(1, |n| n.get().min(MOST_AT_ONCE));
    let mut rows: Vec<(usize, Row)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    rows.sort_by_key(|(index, _)| *index);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The cache and cargo's target folder are one place's at a time.
static PREPARING: Mutex<()> = Mutex::new(());

fn row(place: &Place) -> Row {
    let name = place.to_string();
    let mut row = Row { place: name.clone(), ..Row::default() };
    let prepare = || {
        let _turn = PREPARING.lock();
        programs(place)
    };
    let result = prepare().and_then(|(setup, programs)| {
        // Fetching and building does not count.
        let start = Instant::now();
        let mut outcome = run_all(place, &setup, &programs);
        // One boot in some dozens loses a part of what a program printed, on the way through the emulated console.
        if outcome.as_ref().is_ok_and(|outcome| outcome.is_incomplete(&programs)) {
            step(&format!("{name}: part of the output is lost, once more"));
            outcome = run_all(place, &setup, &programs);
        }
        row.seconds = start.elapsed().as_secs();
        outcome
    });
    match result {
        Ok(outcome) => {
            row.report = Report::read(&outcome.out);
            row.errors.clone_from(&outcome.errors);
            if let Err(error) = log(&name, &outcome) {
                row.errors.push(error);
            }
        }
        Err(error) => row.errors.push(error),
    }
    row
}

/// The place made ready, and the programs for it, each with its arguments.
fn programs(place: &Place) -> Result<(Setup, Vec<Vec<String>>), String> {
    let setup = Setup::of(place)?;
    let mut programs = Vec::new();
    let cargo = ["test", "--no-run", "--tests", "--package", workspace::LIBRARY, "--features", "counter"];
    for program in built(&setup, &cargo)? {
        let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
        if place.runner != Runner::Native && NATIVE_ALONE.contains(&name) {
            continue;
        }
        let mut command = vec![program, "--show-output".into()];
        for (_, test, _) in SKIPPED.iter().filter(|(prefix, ..)| place.to_string().starts_with(prefix)) {
            command.extend(["--skip".into(), (*test).into()]);
        }
        programs.push(command);
    }
    let doctor =
        built(&setup, &["build", "--release", "--example", "doctor", "--package", workspace::LIBRARY])?
            .pop()
            .ok_or("cargo built no doctor")?;
    programs.push(vec![doctor, "--json".into()]);
    Ok((setup, programs))
}

/// The programs that cargo builds, from its messages.
fn built(setup: &Setup, arguments: &[&str]) -> Result<Vec<String>, String> {
    let mut cargo = setup.cargo();
    cargo
        .current_dir(workspace::root())
        .args(arguments)
        .args(["--quiet", "--message-format=json-render-diagnostics"]);
    let messages = stdout(&mut cargo)?;
    let executable =
        |line: &str| Some(line.split_once("\"executable\":\"")?.1.split_once('"')?.0.to_string());
    Ok(messages.lines().filter_map(executable).collect())
}

/// What all programs of a place print.
#[derive(Default)]
struct Outcome {
    out: String,
    err: String,
    /// Of programs and guests that came to no good end.
    errors: Vec<String>,
}

impl Outcome {
    /// Whether a test program, all of which came to a good end, has not told how many tests passed.
    fn is_incomplete(&self, programs: &[Vec<String>]) -> bool {
        // The last is the doctor.
        self.errors.is_empty() && Report::read(&self.out).told + 1 < programs.len()
    }
}

fn run_all(place: &Place, setup: &Setup, programs: &[Vec<String>]) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    let required = required(place);
    let mut run = |name: &str, command: &[String]| -> Result<(), String> {
        let [program, arguments @ ..] = command else { return Ok(()) };
        let output = output(
            Command::new(program)
                .args(arguments)
                .current_dir(workspace::root())
                .env("CARGO_MANIFEST_DIR", workspace::root())
                .env("RUST_BACKTRACE", "0")
                .env(TIMEOUT_VARIABLE, TIMEOUT)
                .env("VDSO_TIME_TEST_REQUIRES", &required),
        )?;
        outcome.out.push_str(&String::from_utf8_lossy(&output.stdout));
        let said = String::from_utf8_lossy(&output.stderr);
        let status = output.status.code().map_or_else(|| output.status.to_string(), |code| code.to_string());
        outcome.errors.extend(trouble(name, &status, &said));
        outcome.err.push_str(&said);
        Ok(())
    };
    if matches!(place.runner, Runner::Kernel(_)) {
        let mut command = setup.runner.clone();
        command.push("--each".into());
        command.extend(programs.join(&"--and".to_string()));
        run("the guest", &command)?;
    } else {
        for program in programs {
            run(program.first().map_or("", String::as_str), &[&setup.runner[..], program].concat())?;
        }
    }
    Ok(outcome)
}

/// What no test may miss there, whatever this machine has.
fn required(place: &Place) -> String {
    let Runner::Kernel(boot) = &place.runner else { return String::new() };
    let year = boot.variants.iter().map(|variant| variant.name).filter(|name| *name == "2040");
    [boot.guest.has].into_iter().chain(year).collect::<Vec<_>>().join(" ")
}

/// The programs that did not leave with 0, of which the kernel runner tells each by itself, and a guest that never came
/// to its end.
fn trouble(program: &str, status: &str, said: &str) -> Vec<String> {
    let short = |program: &str| program.rsplit('/').next().unwrap_or(program).to_string();
    let told: Vec<(&str, &str)> = said
        .lines()
        .filter_map(|line| line.strip_prefix("kernel-runner: ")?.split_once(": status "))
        .filter_map(|(program, rest)| Some((program, rest.split_once(',')?.0)))
        .collect();
    let ended = if told.is_empty() { vec![(program, status)] } else { told };
    let bad = ended.into_iter().filter(|(_, status)| *status != "0");
    let mut trouble: Vec<String> =
        bad.map(|(program, status)| format!("{}: status {status}", short(program))).collect();
    if status == GUEST_FAILED {
        let words = said.lines().rev().find_map(|line| line.strip_prefix("kernel-runner: "));
        trouble.push(words.unwrap_or("the guest failed").into());
    }
    trouble
}

/// Keeps what the programs printed, for the failures.
fn log(place: &str, outcome: &Outcome) -> Result<(), String> {
    let folder = workspace::root().join("target/matrix");
    cache::create(&folder)?;
    let text = format!("{}\n== on standard error ==\n{}", outcome.out, outcome.err);
    cache::write(&folder.join(format!("{place}.log")), &text)
}

#[cfg(test)]
mod tests {
    use super::trouble;

    #[test]
    fn who_came_to_no_good_end() {
        assert_eq!(trouble("/d/live-1", "0", ""), [""; 0]);
        assert_eq!(trouble("/d/live-1", "signal: 11", "x"), ["live-1: status signal: 11"]);
        let said = "kernel-runner: QEMU ended: it panicked\nkernel-runner: once more\n\
                    kernel-runner: /d/live-1: status 0, 5 ms\nkernel-runner: /d/ids-2: status 101, 7 ms\n";
        assert_eq!(trouble("the guest", "1", said), ["ids-2: status 101"]);
        let said = "kernel-runner: /d/live-1: status 0, 5 ms\nkernel-runner: no end after 3 s\n  [1] Oops\n";
        assert_eq!(trouble("the guest", "125", said), ["no end after 3 s"]);
    }
}
