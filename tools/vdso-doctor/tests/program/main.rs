//! Runs the program: what it prints, where it prints it, and its exit status.

mod operators;

use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::process::Command;

use serde_json::Value;
use test_support::command::{Ended, assert_says_that_output_is_lost, started};
use test_support::{has_tool, not_run_here};

const PROGRAM: &str = env!("CARGO_BIN_EXE_vdso-doctor");

fn command(wrapper: &[&str], arguments: &str) -> Command {
    let mut words = wrapper
        .iter()
        .copied()
        .chain([PROGRAM])
        .chain(arguments.split_whitespace());
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command
}

/// Runs a command. Returns `None` if the kernel cannot start the program.
fn ended(command: &mut Command) -> Option<Ended> {
    started(command.output())
}

fn run(arguments: &str) -> Option<Ended> {
    ended(&mut command(&[], arguments))
}

#[test]
fn text_fits_80_columns_and_the_verdict_comes_first() {
    for (arguments, contains) in [
        ("--help", "Exit status:"),
        ("--help", "\ndocs/CLOCK_SOURCES.md"),
        ("--version", env!("CARGO_PKG_VERSION")),
        ("", "--verbose"),
        ("", "\ngettimeofday()"),
        ("--verbose", "clock_getres"),
    ] {
        let Some((status, out, error)) = run(arguments) else {
            return;
        };
        assert_eq!((status, &*error), (Some(0), ""), "{arguments}");
        assert!(
            out.contains(contains) && out.ends_with('\n'),
            "{arguments}: {out}"
        );
        let is_report = arguments.is_empty() || arguments == "--verbose";
        assert_eq!(out.lines().find(|line| line.chars().count() > 80), None);
        if is_report {
            let verdict = out.split("\n\n").next().unwrap();
            let is_about_reads = verdict.contains("CLOCK_") || verdict.contains("every read");
            assert!(verdict.ends_with('.') && is_about_reads, "{out}");
        }
    }
}

#[test]
fn only_a_forced_or_real_terminal_gets_colours() {
    for (variables, is_coloured) in [
        (&["CLICOLOR_FORCE"][..], true),
        (&[], false),
        (&["CLICOLOR_FORCE", "NO_COLOR"], false),
    ] {
        let mut command = command(&[], "");
        let settings = variables.iter().map(|name| (name, "1"));
        let Some((_, out, _)) = ended(command.env_remove("NO_COLOR").envs(settings)) else {
            return;
        };
        assert_eq!(out.contains('\x1b'), is_coloured, "{variables:?}: {out}");
    }
}

#[test]
fn wrong_arguments_are_status_64_and_one_line() {
    const WRONG: &str = "--jsn, -x, extra, --json=yes, --quiet --json, --generate, --verbose --json, \
        --require-user-space=, --require-user-space=REALTIM, --require-user-space TAI, \
        --pid, --pid=abc, --pid=99999999999, --generate=foo, --json --generate=man";
    for arguments in WRONG.split(", ") {
        let Some((status, out, error)) = run(arguments) else {
            return;
        };
        assert_eq!(
            (status, &*out, error.lines().count()),
            (Some(64), "", 1),
            "{arguments}: {error}"
        );
        assert!(error.starts_with("vdso-doctor: "), "{arguments}: {error}");
        assert!(
            error.ends_with(" (see `vdso-doctor --help`)\n"),
            "{arguments}: {error}"
        );
        assert_eq!(error.matches("--help").count(), 1, "{arguments}: {error}");
    }
}

#[test]
fn the_manual_page_has_the_sections_of_man_pages_7_in_their_order() {
    let Some((_, page, error)) = run("--generate man") else {
        return;
    };
    let sections: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix(".SH "))
        .collect();
    let expected = [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "EXIT STATUS",
        "ENVIRONMENT",
        "FILES",
        "EXAMPLES",
        "SEE ALSO",
    ];
    assert_eq!(sections, expected, "{error}");
    let text = page
        .replace('\\', "")
        .replace("fB", "")
        .replace("fI", "")
        .replace("fR", "");
    for words in [
        "--pid PID [--json]",
        "--require-user-space[=CALLS]",
        "--metrics > vdso.prom",
    ] {
        assert!(text.contains(words), "{words}: {page}");
    }
}

#[test]
fn completions_know_the_options() {
    for shell in ["bash", "fish", "zsh"] {
        let Some((_, completions, error)) = run(&format!("--generate {shell}")) else {
            return;
        };
        let has_option = completions.contains("require-user-space");
        assert!(has_option, "{shell}: {completions}{error}");
    }
}

const README: &str = include_str!("../../README.md");

/// Returns the names in backticks.
fn fields(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns the rows of the README's table after this sentence. Each row has the fields in its first
/// column and the fields in its second.
fn documented(sentence: &str) -> Vec<[BTreeSet<&'static str>; 2]> {
    let (_, text) = README.split_once(sentence).unwrap();
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .skip(2);
    let row = |line: &'static str| {
        let (names, content) = line[1..].split_once('|').unwrap();
        [fields(names), fields(content)]
    };
    lines
        .take_while(|line| line.starts_with('|'))
        .map(row)
        .collect()
}

fn has_fields<'a>(value: &Value, names: impl IntoIterator<Item = &'a &'a str>) {
    let object = value.as_object().unwrap_or_else(|| panic!("{value}"));
    let names: BTreeSet<&str> = names.into_iter().copied().collect();
    assert_eq!(
        object.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        names
    );
}

#[test]
fn the_json_has_the_fields_of_the_readme() {
    let Some((status, out, error)) = run("--json") else {
        return;
    };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["format"], 1);
    let rows = documented("prints a `Diagnosis`");
    has_fields(&json, rows.iter().flat_map(|[names, _]| names));
    let content = |field| {
        rows.iter()
            .find_map(|[names, content]| names.contains(field).then_some(content))
    };
    has_fields(&json["clock_source"], content("clock_source").unwrap());
    let functions = [
        "time",
        "gettimeofday",
        "clock_gettime",
        "clock_getres",
        "getcpu",
    ];
    has_fields(&json["routes"], &functions);
    let (error, image) = content("vdso")
        .unwrap()
        .iter()
        .partition::<Vec<_>, _>(|name| **name == "error");
    has_fields(
        &json["vdso"],
        if json["vdso"]["error"].is_null() {
            image
        } else {
            error
        },
    );
    let measurements = json["measurements"].as_array().unwrap();
    assert!(measurements.len() >= 3 + 12 + 12, "{out}");
    for measurement in measurements {
        has_fields(measurement, content("measurements").unwrap());
    }
}

#[test]
fn another_process_has_a_report() {
    let pid = format!("--pid={}", std::process::id());
    let Some((status, out, error)) = run(&pid) else {
        return;
    };
    if status == Some(2) {
        return not_run_here(format!("no vDSO, or no /proc: {error}"));
    }
    assert_eq!((status, &*error), (Some(0), ""));
    assert!(
        out.contains("clock_gettime") && out.lines().all(|line| line.chars().count() <= 80),
        "{out}"
    );
    let (_, out, _) = run(&(pid + " --json")).unwrap();
    let json: Value = serde_json::from_str(&out).unwrap();
    let (_, text) = README.split_once("prints a `ProcessDiagnosis`: ").unwrap();
    let mut names = fields(text.split("\n\n").next().unwrap());
    // This is a field of a symbol.
    names.remove("version");
    has_fields(&json, &names);
}

#[test]
fn a_missing_process_is_an_error_in_one_line() {
    let Some((status, out, error)) = run("--pid=4194305") else {
        return;
    };
    assert_eq!(
        (status, &*out, error.lines().count()),
        (Some(2), "", 1),
        "{error}"
    );
    // The kernel returns the same error if /proc hides a process from the user.
    for cause in [
        "cannot read process 4194305: there is no such process",
        "/proc hides it (hidepid)",
        "`ps -p PID` as root",
    ] {
        assert!(error.contains(cause), "{error}");
    }
}

#[test]
fn the_status_is_the_location_of_the_required_reads() {
    let Some((_, out, _)) = run("--json") else {
        return;
    };
    let json: Value = serde_json::from_str(&out).unwrap();
    if !json["unproved"].is_null() {
        return not_run_here("nothing can be proved");
    }
    if json["supervisor"] == "guest-kernel" && json["measurements"][0]["location"] == "kernel" {
        return not_run_here("the vDSO of user-mode Linux makes system calls");
    }
    // The coarse clocks do not need the counter, but they need a vDSO with names.
    let coarse = i32::from(json["routes"]["time"]["via"] != "vdso");
    // vdso-who works on these architectures, but not under a supervisor.
    let has_who = ["x86_64", "aarch64"].contains(&ARCH) && json["supervisor"].is_null();
    for (arguments, expected) in [
        ("--require-user-space=5,Time,monotonic_coarse", coarse),
        ("--require-user-space=CLOCK_MONOTONIC_COARSE --json", coarse),
        ("--require-user-space=THREAD_CPUTIME_ID,10", 1),
        ("--require-user-space=10", 2),
    ] {
        let (status, out, error) = run(arguments).unwrap();
        assert_eq!(status, Some(expected), "{arguments}\n{out}{error}");
        let is_report_of_slow_reads = expected == 1 && !arguments.contains("--json");
        assert_eq!(
            out.contains("vdso-who)\" top`"),
            has_who && is_report_of_slow_reads,
            "{out}"
        );
        // A check prints nothing or one line.
        let quiet = arguments.replace("--json", "") + " --quiet";
        let (status, out, error) = run(&quiet).unwrap();
        let lines = usize::from(expected != 0);
        assert_eq!(
            (status, &*out, error.lines().count()),
            (Some(expected), "", lines),
            "{quiet}: {error}"
        );
    }
}

#[test]
fn output_that_cannot_be_written_is_status_2_and_an_error() {
    // Without a vDSO the required read enters the kernel: status 1.
    for arguments in [
        "",
        "--json",
        "--help",
        "--require-user-space=MONOTONIC_COARSE",
    ] {
        assert_says_that_output_is_lost("vdso-doctor", || command(&[], arguments), started);
    }
}

#[test]
fn valgrind_is_named_as_the_cause() {
    if run("--help").is_none() || !has_tool("valgrind", &["-q", "true"]) {
        return;
    }
    let mut command = command(&["valgrind", "-q"], "--require-user-space");
    let Some((status, out, error)) = ended(&mut command) else {
        return;
    };
    if out.is_empty() {
        return not_run_here(format!("it does not start this program: {error}"));
    }
    let words: Vec<_> = out.split_whitespace().collect();
    assert!(
        words.join(" ").contains("Run the doctor without valgrind"),
        "{out}"
    );
    // As in an emulator, it is unknown what the kernel's vDSO does.
    assert_eq!(status, Some(2), "{out}");
}
