//! `vdso-doctor who`: options, errors, exit status, signals. The counts are tested elsewhere.

#![cfg(all(feature = "who", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use test_support::nix::sys::signal::{Signal, kill};
use test_support::nix::unistd::Pid;
use test_support::not_run::target_tmpdir;
use test_support::{has_tool, not_run, not_run_here};

const PROGRAM: &str = env!("CARGO_BIN_EXE_vdso-doctor");

/// Reads clocks for two seconds.
const READS: &str = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass";

fn who(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("who").args(arguments).stdin(Stdio::null());
    command
}

/// The exit status and the output; none if perf_event_open(2) cannot be used here.
fn ended(output: Output) -> Option<(Option<i32>, String, String)> {
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let lacks = ["perf_event_open", "breakpoints", "gVisor", "no vDSO", "Ptrace", "ENOSYS"];
    if output.status.code() == Some(2) && lacks.iter().any(|lack| error.contains(lack)) {
        not_run_here("perf", error);
        return None;
    }
    Some((output.status.code(), out, error))
}

/// Whether the program is on this machine. It is not in a guest.
fn is_here() -> bool {
    let is_here = fs::exists(PROGRAM).unwrap_or(false);
    if !is_here {
        not_run("there is no vdso-doctor here");
    }
    is_here
}

fn run(arguments: &[&str]) -> Option<(Option<i32>, String, String)> {
    ended(who(arguments).output().unwrap())
}

#[test]
fn wrong_options_are_status_64_and_one_line() {
    if !is_here() {
        return;
    }
    for arguments in [
        &[][..],
        &["--"],
        &["--pid=1", "--", "true"],
        &["--pid=1", "--duration=0"],
        &["--pid=1", "--percent=5"],
        &["--pid=1", "--exact", "--count"],
        &["--pid=1", "--count", "--percent=51"],
        &["--pid=1", "--frequency=0"],
    ] {
        let Output { status, stdout, stderr } = who(arguments).output().unwrap();
        let error = String::from_utf8(stderr).unwrap();
        assert_eq!(
            (status.code(), stdout.len(), error.lines().count()),
            (Some(64), 0, 1),
            "{arguments:?}: {error}"
        );
    }
}

#[test]
fn a_missing_process_or_command_is_one_line() {
    if !is_here() {
        return;
    }
    for (arguments, expected) in [
        (&["--pid=4194305"][..], "process 4194305: there is no such process"),
        (&["--", "/nonexistent/program"], "cannot run /nonexistent/program: "),
    ] {
        let Some((status, out, error)) = run(arguments) else { return };
        assert_eq!((status, &*out, error.lines().count()), (Some(2), "", 1), "{error}");
        assert!(error.starts_with(&format!("vdso-doctor: {expected}")), "{error}");
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
    }
}

/// The command's output and the report stay apart.
#[test]
fn the_report_goes_to_the_file_of_output() {
    let path = target_tmpdir().join("who.json");
    if !has_tool(&["sh", "-c", "true"]) {
        return;
    }
    let file = path.to_str().unwrap();
    let Some((status, out, _)) = run(&["--json", "--output", file, "--", "sh", "-c", "echo said"]) else {
        return;
    };
    assert_eq!((status, &*out), (Some(0), "said\n"));
    let json: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(json["method"], "sampled");
}

#[test]
fn the_json_has_the_fields_of_format_1() {
    if !has_tool(&["python3", "-c", "0"]) {
        return;
    }
    for (option, method) in [("--frequency=2000", "sampled"), ("--exact", "exact"), ("--count", "slices")] {
        let svg = target_tmpdir().join(format!("who-{method}.svg"));
        let graph = format!("--flamegraph={}", svg.display());
        let Some((status, out, error)) = run(&[option, "--json", &graph, "--", "python3", "-c", READS])
        else {
            return;
        };
        assert_eq!((status, &*error), (Some(0), ""), "{out}");
        let json: Value = serde_json::from_str(&out).unwrap();
        let has = |value: &Value, fields: &str| {
            fields.split(' ').for_each(|field| assert!(value.get(field).is_some(), "{field} in {json}"));
        };
        has(
            &json,
            "format pid name method sees_kernel has_vdso programs seconds cpu_seconds counted_cpu_seconds \
             samples lost read_ns trap_ns overhead_percent error_percent reads reads_per_second cpu_percent \
             process_percent callers",
        );
        has(
            &json["callers"][0],
            "function file line module records reads reads_per_second cpu_percent process_percent close_percent",
        );
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

    fn pid(&self) -> String {
        format!("--pid={}", self.0.id())
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

#[test]
fn an_interrupt_prints_what_there_is() {
    let Some(reader) = Reader::start() else { return not_run_here("python3", "it does not start") };
    let arguments = [&*reader.pid(), "--duration=100"];
    let mut child = who(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !handles(&mut child, Signal::SIGTERM) {
        sleep(Duration::from_millis(10));
    }
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
    let Some((status, out, error)) = ended(child.wait_with_output().unwrap()) else { return };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    assert!(out.starts_with("process "), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
}

/// python3 reads clocks faster than a stopped vdso-doctor takes the records.
#[test]
fn lost_records_are_counted() {
    let Some(reader) = Reader::start() else { return not_run_here("python3", "it does not start") };
    let arguments = [&*reader.pid(), "--exact", "--json", "--duration=100"];
    let mut child = who(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !handles(&mut child, Signal::SIGTERM) {
        sleep(Duration::from_millis(10));
    }
    let pid = Pid::from_raw(child.id() as i32);
    let signal = |signal| kill(pid, signal).unwrap();
    // Buffers of 16 MiB hold 8000 records of 2 KiB.
    sleep(Duration::from_millis(100));
    signal(Signal::SIGSTOP);
    sleep(Duration::from_secs(2));
    signal(Signal::SIGCONT);
    sleep(Duration::from_millis(500));
    signal(Signal::SIGINT);
    let Some((status, out, error)) = ended(child.wait_with_output().unwrap()) else { return };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    let json: Value = serde_json::from_str(&out).unwrap();
    let number = |field: &str| json[field].as_u64().unwrap();
    assert!(number("lost") > 0, "{json}");
    assert_eq!(number("reads"), number("samples") + number("lost"), "{json}");
}

#[test]
fn a_reader_that_is_gone_is_no_failure_and_a_full_disk_is() {
    let Some(reader) = Reader::start() else { return not_run_here("python3", "it does not start") };
    let (writer, _) = UnixStream::pair().unwrap();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    for (out, expected) in [(Stdio::from(OwnedFd::from(writer)), 0), (Stdio::from(full), 2)] {
        let output = who(&[&reader.pid(), "--duration=1"]).stdout(out).output().unwrap();
        let Some((status, _, error)) = ended(output) else { return };
        assert_eq!((status, error.lines().count()), (Some(expected), usize::from(expected != 0)), "{error}");
    }
}
