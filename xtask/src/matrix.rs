//! `cargo xtask matrix`: all tests and the doctor on every architecture, emulator and kernel of the table.

use std::fs;
use std::process::{ExitCode, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::combinations::{COMBINATIONS, TESTS};
use crate::matrix_page::{Row, costs, failures, page, published_costs, table};
use crate::place::Place;
use crate::process::{output, step};
use crate::programs::{Ended, Program, built, each, ended, tests};
use crate::report::{Report, Tests, is_whole_doctor};
use crate::setup::{Setup, TIMEOUT_VARIABLE};
use crate::{Error, cache, workspace};

const DOCUMENT: &str = "docs/MATRIX.md";

/// Has the table of costs, between the markers.
const BENCHMARKS: &str = "docs/BENCHMARKS.md";
const MARKERS: [&str; 2] = ["<!-- matrix -->\n", "<!-- /matrix -->"];

/// Each guest has half a gigabyte.
const MOST_AT_ONCE: usize = 8;

/// The seconds that a program may take, on a busy machine.
const TIMEOUT: &str = "600";

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
        rewrite(BENCHMARKS, |old| {
            let parts = old.split_once(MARKERS[0]).zip(old.split_once(MARKERS[1]));
            let ((head, _), (_, tail)) = parts.ok_or_else(|| format!("{BENCHMARKS}: no {MARKERS:?}"))?;
            Ok([head, MARKERS[0], &published_costs(&rows, old), MARKERS[1], tail].concat())
        })?;
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
    let prepare = || {
        let _turn = PREPARING.lock();
        programs(place)
    };
    let mut seconds = 0;
    let run = |(setup, programs): (Setup, Vec<Program>)| {
        // Fetching and building does not count.
        let start = Instant::now();
        // Emulated, a backtrace takes long.
        let output =
            output(each(&setup, &programs).env(TIMEOUT_VARIABLE, TIMEOUT).env("RUST_BACKTRACE", "0"));
        seconds = start.elapsed().as_secs();
        let output = output?;
        log(place, &output)?;
        Ok(outcome(&programs, &output))
    };
    let (report, errors) = prepare().and_then(run).unwrap_or_else(|error| (Report::default(), vec![error]));
    Row { place: place.to_string(), report, errors, seconds }
}

/// The place made ready, and the programs for it: the doctor, and the tests. The doctor comes first,
/// for a test may change the clock source.
fn programs(place: &Place) -> Result<(Setup, Vec<Program>), String> {
    let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    let setup = Setup::of(place)?;
    let mut cargo = setup.cargo();
    cargo.args(words("build --quiet --release --package vdso-doctor"));
    let mut doctor = built(&mut cargo, "\"executable\":\"")?.pop().ok_or("cargo built no doctor")?;
    // All programs run in one folder, which is that of the tests.
    doctor.package = workspace::root().display().to_string();
    let tests = tests(place, &setup, &words(&format!("--quiet {TESTS}")), &words("--show-output"))?;
    Ok((setup, [doctor.with_argument("--json")].into_iter().chain(tests).collect()))
}

/// What is to be reported of the programs, of which the first is the doctor, and what is wrong: a
/// program that failed or was not run, output that is not whole, a guest that did not come to its
/// end.
fn outcome(programs: &[Program], output: &Output) -> (Report, Vec<String>) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let ended = ended(&stdout);
    let mut errors = Vec::new();
    let mut sum = Tests::default();
    for (index, program) in programs.iter().enumerate() {
        let is_whole = match ended.get(index) {
            None => {
                errors.push(format!("{}: not run to its end", program.name()));
                continue;
            }
            Some(Ended { status, out }) => {
                let tests = Tests::read(out);
                let is_whole = if index == 0 { is_whole_doctor(out) } else { tests.is_some() };
                sum.add(tests.unwrap_or_default());
                if *status != "0" {
                    errors.push(format!("{}: status {status}", program.name()));
                }
                // A program that crashed prints no end.
                is_whole || *status != "0"
            }
        };
        if !is_whole {
            errors.push(format!("{}: its output is not whole", program.name()));
        }
    }
    if ![Some(0), Some(1)].contains(&output.status.code()) || ended.len() > programs.len() {
        let said = String::from_utf8_lossy(&output.stderr);
        let words = said.lines().rev().find_map(|line| line.strip_prefix("place-runner: "));
        errors.push(words.map_or_else(|| format!("the place runner: {}", output.status), String::from));
    }
    (Report::read(ended.first().map_or("", |doctor| doctor.out), sum), errors)
}

/// Keeps what the programs printed, for the failures.
fn log(place: &Place, output: &Output) -> Result<(), String> {
    let folder = workspace::target().join("matrix");
    cache::create(&folder)?;
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    cache::write(&folder.join(format!("{place}.log")), &format!("{out}\n== on standard error ==\n{err}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{ExitStatus, Output};

    use super::outcome;
    use crate::programs::Program;

    const DOCTOR: &str = "{\"format\": 1, \"cause\": \"fine\"}\n";

    fn test(failed: u32) -> String {
        let list = if failed == 0 { "" } else { "\nfailures:\n    broken\n" };
        let word = if failed == 0 { "ok" } else { "FAILED" };
        format!(
            "\nrunning 3 tests\n{list}\ntest result: {word}. {} passed; {failed} failed; 0 ignored; \
             0 measured; 0 filtered out; finished in 0.01s\n\n",
            3 - failed
        )
    }

    /// The number of tests that passed, and what is wrong, of a doctor and two test programs that
    /// printed this, each with its status.
    fn found(code: i32, said: &str, printed: &[(&str, &str)]) -> (u32, Vec<String>) {
        let programs = ["/d/doctor", "/d/live-1", "/d/ids-2"].map(|path| Program::new(path, "/d"));
        let mark =
            |(out, status): &(&str, &str)| format!("{out}\nplace-runner: /d/x: status {status}, 5 ms\n");
        let stdout: String = printed.iter().map(mark).collect();
        let status = ExitStatus::from_raw(code << 8);
        let output = Output { status, stdout: stdout.into(), stderr: said.into() };
        let (report, errors) = outcome(&programs, &output);
        (report.tests.passed, errors)
    }

    #[test]
    fn a_program_that_failed_is_named() {
        let (good, bad) = (test(0), test(1));
        assert_eq!(found(0, "", &[(DOCTOR, "0"), (&good, "0"), (&good, "0")]), (6, vec![]));
        assert_eq!(
            found(1, "", &[(DOCTOR, "0"), (&good, "0"), (&bad, "101")]),
            (5, vec!["ids: status 101".into()])
        );
        assert_eq!(
            found(1, "", &[(DOCTOR, "0"), ("\nrunning 3 tests\n", "139"), (&good, "0")]),
            (3, vec!["live: status 139".into()])
        );
    }

    #[test]
    fn output_that_is_not_whole_is_no_success() {
        let good = test(0);
        let cut = &good[..good.len() - 20];
        assert_eq!(
            found(0, "", &[(DOCTOR, "0"), (cut, "0"), (&good, "0")]),
            (3, vec!["live: its output is not whole".into()])
        );
        assert_eq!(
            found(0, "", &[(&DOCTOR[..20], "0"), (&good, "0"), (&good, "0")]),
            (6, vec!["doctor: its output is not whole".into()])
        );
        assert_eq!(found(0, "", &[(DOCTOR, "0"), (&good, "0")]), (3, vec!["ids: not run to its end".into()]));
    }

    #[test]
    fn a_guest_that_came_to_no_end_says_why() {
        let said =
            "place-runner: QEMU ended\nplace-runner: once more\nplace-runner: /d/ids-2: no end\n  [1] Oops\n";
        assert_eq!(
            found(125, said, &[(DOCTOR, "0"), (&test(0), "0")]),
            (3, vec!["ids: not run to its end".into(), "/d/ids-2: no end".into()])
        );
    }
}
