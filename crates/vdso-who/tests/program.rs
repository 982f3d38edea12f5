//! The program: what it prints, where, and its exit status. The counts are tested elsewhere.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use test_support::nix::sys::signal::{Signal, kill};
use test_support::nix::unistd::{Pid, gettid};
use test_support::not_run::target_tmpdir;
use test_support::{has_tool, not_run_here};

const PROGRAM: &str = env!("CARGO_BIN_EXE_vdso-who");
const README: &str = include_str!("../README.md");

/// The exit status, standard output and standard error.
type Ended = (Option<i32>, String, String);

/// What a command printed; none if the kernel could not start the program, as under QEMU or in a
/// guest.
fn started(output: io::Result<Output>) -> Option<Ended> {
    let why = match output {
        Ok(Output { status, .. }) if [Some(126), Some(127)].contains(&status.code()) => status.to_string(),
        Ok(Output { status, stdout, stderr }) => {
            let [out, error] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
            return Some((status.code(), out, error));
        }
        Err(error) => error.to_string(),
    };
    not_run_here("exec", format!("{PROGRAM}: {why}"));
    None
}

/// Whether a process cannot be watched here; says so.
fn lacks_perf(status: Option<i32>, error: &str) -> bool {
    let lacks = ["perf_event_open", "breakpoints", "gVisor", "no vDSO", "Ptrace", "ENOSYS", "cannot run"];
    let lacks_perf = status == Some(2) && lacks.iter().any(|lack| error.contains(lack));
    if lacks_perf {
        not_run_here("perf", error);
    }
    lacks_perf
}

/// The names in backticks.
fn fields(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The rows of a table of the README: the fields in the first column, and those in the second.
fn documented(sentence: &str) -> Vec<[BTreeSet<&'static str>; 2]> {
    let (_, text) = README.split_once(sentence).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with('|')).skip(2);
    let row = |line: &'static str| {
        let (names, content) = line[1..].split_once('|').unwrap();
        [fields(names), fields(content)]
    };
    lines.take_while(|line| line.starts_with('|')).map(row).collect()
}

fn has_fields<'a>(value: &Value, names: impl IntoIterator<Item = &'a &'a str>) {
    let object = value.as_object().unwrap_or_else(|| panic!("{value}"));
    let names: BTreeSet<&str> = names.into_iter().copied().collect();
    assert_eq!(object.keys().map(String::as_str).collect::<BTreeSet<_>>(), names);
}

/// Reads clocks for two seconds.
const READS: &str =
    "import time\nprint('said')\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass";

fn who(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The exit status and the output; none if perf_event_open(2) cannot be used here.
fn run(arguments: &[&str]) -> Option<Ended> {
    started(who(arguments).output()).filter(|(status, _, error)| !lacks_perf(*status, error))
}

#[test]
fn wrong_arguments_are_status_64_and_one_line() {
    for arguments in [
        "",
        "--",
        "--jsn --pid=1",
        "--pid=1 -- true",
        "--pid=1 --exact --count",
        "--pid=1 --duration=0",
        "--pid=1 --percent=5",
        "--pid=1 --count --percent=51",
        "--pid=1 --frequency=0",
        "completions",
    ] {
        let Some((status, out, error)) = run(&arguments.split_whitespace().collect::<Vec<_>>()) else {
            return;
        };
        assert_eq!((status, &*out, error.lines().count()), (Some(64), "", 1), "{arguments}: {error}");
        assert!(error.starts_with("vdso-who: ") && error.contains("--help"), "{arguments}: {error}");
    }
}

#[test]
fn help_fits_80_columns() {
    for (arguments, contains) in [
        (&["--help"][..], "Examples:"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["completions", "bash"], "--frequency"),
        (&["man"], ".SH OPTIONS"),
    ] {
        let Some((status, out, error)) = run(arguments) else { return };
        assert_eq!((status, &*error), (Some(0), ""), "{arguments:?}");
        assert!(out.contains(contains), "{arguments:?}: {out}");
        let wide = out.lines().find(|line| line.chars().count() > 80);
        assert!(wide.is_none() || arguments[0] != "--help", "{wide:?}");
    }
}

#[test]
fn a_missing_process_or_command_is_an_error_in_one_line() {
    let process = "process 4194305: there is no such process, it ended, or it is a kernel thread";
    let number = std::process::id();
    let (to, from) = channel();
    std::thread::spawn(move || {
        to.send(gettid()).unwrap();
        std::thread::park();
    });
    let thread = from.recv().unwrap();
    for (arguments, expected) in [
        (&["--pid=4194305"][..], process),
        (
            &[&format!("--pid={thread}")],
            &format!("{thread} is a thread of process {number}: use --pid {number}"),
        ),
        (&["--", "/nonexistent/program"], "cannot run /nonexistent/program: "),
    ] {
        let Some((status, out, error)) = started(who(arguments).output()) else { return };
        assert_eq!((status, &*out, error.lines().count()), (Some(2), "", 1), "{error}");
        assert!(error.starts_with(&format!("vdso-who: {expected}")), "{error}");
    }
}

#[test]
fn output_that_cannot_be_written_is_status_2() {
    let broken = || {
        let (writer, _) = UnixStream::pair().unwrap();
        Stdio::from(OwnedFd::from(writer))
    };
    let file = |path: &str| Stdio::from(OpenOptions::new().write(true).open(path).unwrap());
    for arguments in [&["--help"][..], &["--", "true"]] {
        for (out, status, error) in [
            (file("/dev/null"), 0, ""),
            (file("/dev/full"), 2, "vdso-who: cannot write the report: No space left on device"),
            // A reader that left has read enough.
            (broken(), 0, ""),
        ] {
            let Some((found, _, said)) = started(who(arguments).stdout(out).output()) else { return };
            if lacks_perf(found, &said) {
                continue;
            }
            assert_eq!(found, Some(status), "{arguments:?}: {said}");
            assert!(said.starts_with(error) && said.is_empty() == error.is_empty(), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn the_status_is_the_commands() {
    if !has_tool(&["sh", "-c", "true"]) {
        return;
    }
    for (script, expected) in [("exit 7", 7), ("kill -9 $$", 137), ("exec true", 0)] {
        let Some((status, out, error)) = run(&["--", "sh", "-c", script]) else { return };
        assert_eq!((status, &*error), (Some(expected), ""), "{script}: {out}");
        assert!(out.starts_with("process "), "{out}");
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    }
}

#[test]
fn a_sigtrap_that_a_breakpoint_may_have_caused_is_explained() {
    if !has_tool(&["sh", "-c", "true"]) {
        return;
    }
    for (option, is_explained) in [("--exact", true), ("--count", true), ("--frequency=100", false)] {
        let Some((status, _, error)) = run(&[option, "--", "sh", "-c", "kill -TRAP $$"]) else { return };
        assert_eq!((status, error.contains("omit --count")), (Some(133), is_explained), "{option}: {error}");
    }
}

/// The report goes to a file, so the command's output stays as it is.
#[test]
fn the_json_has_the_fields_of_the_readme() {
    if !has_tool(&["python3", "-c", "0"]) {
        return;
    }
    let rows = documented("`--json` prints these");
    for (option, method) in [("--frequency=2000", "sampled"), ("--exact", "exact"), ("--count", "slices")] {
        let [svg, report] = ["svg", "json"].map(|kind| target_tmpdir().join(format!("who-{method}.{kind}")));
        let graph = format!("--flamegraph={}", svg.display());
        let output = format!("--output={}", report.display());
        let mut runs =
            (0..5).map(|_| run(&[option, "--json", &graph, &output, "--", "python3", "-c", READS]));
        // A breakpoint can end the command by SIGTRAP: docs/WHO.md. On a busy machine slices may
        // see no read.
        let Some((status, out, error)) = runs.find(|run| !matches!(run, Some((Some(133 | 2), ..)))).unwrap()
        else {
            return;
        };
        assert_eq!((status, &*out, &*error), (Some(0), "said\n", ""));
        let json: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
        has_fields(&json, rows.iter().flat_map(|[names, _]| names));
        let of_both = ["reads", "reads_per_second", "cpu_percent", "process_percent"];
        has_fields(&json["callers"][0], rows.last().unwrap()[1].iter().chain(&of_both));
        assert_eq!((&json["format"], &json["method"]), (&1.into(), &method.into()));
        // A lower bound has no error, and no share of a CPU.
        assert!(method == "slices" || json["error_percent"].is_number() == (method == "exact"), "{json}");
        let has_share = method == "sampled" || (method == "slices" && json["error_percent"].is_number());
        assert_eq!(json["cpu_percent"].is_number(), has_share, "{json}");
        assert!(fs::read_to_string(svg).unwrap().contains("<svg"));
    }
}

/// A process that reads clocks until this is dropped.
struct Reader(Child);

impl Reader {
    fn start() -> Option<Self> {
        let script = "import time\nprint(flush=True)\nwhile True: time.monotonic()";
        let mut command = Command::new("python3");
        let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().ok()?;
        // It says that it reads.
        child.stdout.as_mut()?.read_exact(&mut [0]).ok()?;
        Some(Self(child))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a process handles this signal, or ended.
fn handles(child: &mut Child, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    caught.is_none_or(|caught| caught >> (signal as u32 - 1) & 1 == 1) || child.try_wait().unwrap().is_some()
}

/// python3 reads clocks faster than a stopped vdso-who takes the records.
#[test]
fn an_interrupt_prints_what_there_is_and_lost_records_are_counted() {
    let Some(reader) = Reader::start() else { return not_run_here("python3", "it does not start") };
    let pid = format!("--pid={}", reader.0.id());
    let mut command = who(&[&pid, "--exact", "--json", "--duration=100"]);
    let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        return not_run_here("exec", "vdso-who does not start");
    };
    while !handles(&mut child, Signal::SIGTERM) {
        sleep(Duration::from_millis(10));
    }
    // It has ended if it cannot run here.
    let pid = Pid::from_raw(child.id() as i32);
    let signal = |signal| {
        let _ = kill(pid, signal);
    };
    // Buffers of 16 MiB hold 8000 records of 2 KiB.
    sleep(Duration::from_millis(100));
    signal(Signal::SIGSTOP);
    sleep(Duration::from_secs(2));
    signal(Signal::SIGCONT);
    sleep(Duration::from_millis(500));
    signal(Signal::SIGINT);
    let Some((status, out, error)) = started(child.wait_with_output()) else { return };
    if lacks_perf(status, &error) {
        return;
    }
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    let json: Value = serde_json::from_str(&out).unwrap();
    let number = |field: &str| json[field].as_u64().unwrap();
    assert!(number("lost") > 0, "{json}");
    assert_eq!(number("reads"), number("samples") + number("lost"), "{json}");
}
