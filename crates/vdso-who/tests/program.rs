//! The program: what it prints, where, and its exit status. The counts are tested elsewhere.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::{self, sleep};
use std::time::Duration;

use serde_json::Value;
use test_support::filter;
use test_support::nix::libc;
use test_support::nix::sys::signal::{Signal, kill};
use test_support::nix::unistd::{Pid, gettid};
use test_support::not_run::target_tmpdir;
use test_support::{has_tool, not_run_here};

const PROGRAM: &str = env!("CARGO_BIN_EXE_vdso-who");

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

/// What of a value is not as the schema says. It knows the words that the schema has.
fn faults(schema: &Value, all: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return faults(&all["$defs"][name.trim_start_matches("#/$defs/")], all, value, place);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let names = |name: &str| schema[name].as_array().cloned().unwrap_or_default();
    let types = if schema["type"].is_string() { vec![schema["type"].clone()] } else { names("type") };
    let is_kind = |allowed: &Value| allowed == kind || (allowed == "number" && kind == "integer");
    let mut found = Vec::new();
    if !types.iter().any(is_kind) {
        found.push(format!("{place} is {kind}"));
    }
    if !names("enum").is_empty() && !names("enum").contains(value) {
        found.push(format!("{place} is {value}"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(faults(&schema["items"], all, item, &format!("{place}[{index}]")));
    }
    if let Some(object) = value.as_object() {
        let required = names("required");
        let missing = required.iter().filter(|name| !object.contains_key(name.as_str().unwrap()));
        found.extend(missing.map(|name| format!("{place} lacks {name}")));
        for (name, value) in object {
            match &schema["properties"][name] {
                Value::Null => found.push(format!("{place}.{name} is not in the schema")),
                schema => found.extend(faults(schema, all, value, &format!("{place}.{name}"))),
            }
        }
    }
    found
}

/// The JSON, which has the fields of the schema.
fn checked(json: &str) -> Value {
    let schema: Value = serde_json::from_str(include_str!("../schema.json")).unwrap();
    let json = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(faults(&schema, &schema, &json, "report"), [""; 0], "{json:#}");
    json
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

/// Whether each line has at most 80 columns.
fn fits(text: &str) -> bool {
    text.lines().all(|line| line.chars().count() <= 80)
}

#[test]
fn wrong_arguments_are_status_64_and_one_sentence() {
    for arguments in [
        "",
        "--",
        "--jsn --pid=1",
        "--pid=1 -- true",
        "--pid=1 --all",
        "--all --exact",
        "--pid=1 --may-end-process",
        "--pid=1 --folded --json",
        "--pid=1 --duration=0",
        "--pid=1 --frequency=0",
        "completions",
    ] {
        let Some((status, out, error)) = run(&arguments.split_whitespace().collect::<Vec<_>>()) else {
            return;
        };
        assert_eq!((status, &*out), (Some(64), ""), "{arguments}: {error}");
        assert!(fits(&error) && error.lines().count() <= 3, "{arguments}: {error}");
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
fn a_missing_process_or_command_is_named() {
    let process = "process 4194305: there is no such process, it ended, or it is a kernel thread";
    let number = std::process::id();
    let (to, from) = channel();
    thread::spawn(move || {
        to.send(gettid()).unwrap();
        thread::park();
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
        assert_eq!((status, &*out), (Some(2), ""), "{error}");
        assert!(fits(&error), "{error}");
        let error = error.replace('\n', " ");
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

/// std opens /dev/null in the place of a closed descriptor, so writing to it succeeds.
#[test]
fn a_closed_standard_output_is_status_2_and_the_command_does_not_run() {
    if !has_tool(&["sh", "-c", "true"]) {
        return;
    }
    for arguments in [&["--help"][..], &["man"], &["--", "sh", "-c", "echo ran >&2"]] {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" >&-", PROGRAM]).args(arguments);
        let Some((status, _, error)) = started(command.output()) else { return };
        assert_eq!(status, Some(2), "{arguments:?}: {error}");
        assert_eq!(error, "vdso-who: cannot write the report: standard output is closed\n");
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
        assert!(fits(&out), "{out}");
    }
}

/// Only the signal of a breakpoint of the vDSO is kept from the command.
#[test]
fn a_guarded_command_gets_its_other_signals() {
    if !has_tool(&["sh", "-c", "true"]) {
        return;
    }
    for (script, expected) in [
        ("kill -TRAP $$", 133),
        ("trap 'exit 5' USR1; kill -USR1 $$; exit 4", 5),
        // It stops, and its child lets it continue.
        ("(sleep 0.2; kill -CONT $$) & kill -STOP $$; exit 6", 6),
        ("exec sh -c 'exec sh -c \"exit 7\"'", 7),
    ] {
        let Some((status, out, error)) = run(&["--exact", "--", "sh", "-c", script]) else { return };
        assert_eq!(status, Some(expected), "{script}: {out}{error}");
    }
}

/// The signal that a breakpoint of the vDSO raises if the CPU does not name it ends a program that
/// has no guard.
#[test]
fn a_trap_that_no_register_names_does_not_end_a_guarded_command() {
    let program = target_tmpdir().join("who-traps");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/callers/traps.c");
    let compiled = Command::new("gcc").args(["-O1", "-o"]).arg(&program).arg(source).output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        return not_run_here("compiler", "gcc does not compile");
    }
    let alone = Command::new(&program).status().unwrap();
    assert_eq!(alone.signal(), Some(Signal::SIGTRAP as i32), "{alone}");
    let path = program.to_str().unwrap();
    let Some((status, out, error)) = run(&["--exact", "--json", "--", path]) else { return };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    assert_eq!(checked(&out)["swallowed"], 8000);
}

/// A container's filter and kernel.perf_event_paranoid deny the call with the same errors.
#[test]
fn under_a_seccomp_filter_both_causes_of_a_denial_are_named() {
    const CALL: u32 = libc::SYS_perf_event_open as u32;
    let denied = || filter::deny(&[CALL], libc::EPERM).then(|| who(&["--", "true"]).output());
    let Some(output) = thread::spawn(denied).join().unwrap() else { return };
    let Some((status, out, error)) = started(output) else { return };
    if !error.contains("perf_event_open") {
        return not_run_here("perf", error);
    }
    assert_eq!((status, &*out), (Some(2), ""), "{error}");
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let words = error.split_whitespace().collect::<Vec<_>>().join(" ");
    for cause in ["a seccomp filter", &format!("kernel.perf_event_paranoid is {}:", paranoid.trim())] {
        assert!(words.contains(cause), "{error}");
    }
    assert!(fits(&error), "{error}");
}

/// A process that this program did not start has no guard.
#[test]
fn counting_in_a_running_process_needs_a_word() {
    let pid = format!("--pid={}", std::process::id());
    let Some((status, _, error)) = started(who(&["--exact", &pid]).output()) else { return };
    assert_eq!(status, Some(2));
    assert!(error.contains("--may-end-process") && fits(&error), "{error}");
}

/// The report goes to a file, so the command's output stays as it is.
#[test]
fn the_json_is_as_the_schema_says() {
    if !has_tool(&["python3", "-c", "0"]) {
        return;
    }
    for (option, method) in [("--frequency=2000", "sampled"), ("--exact", "exact")] {
        let report = target_tmpdir().join(format!("who-{method}.json"));
        let output = format!("--output={}", report.display());
        let Some((status, out, error)) = run(&[option, "--json", &output, "--", "python3", "-c", READS])
        else {
            return;
        };
        assert_eq!((status, &*out, &*error), (Some(0), "said\n", ""));
        let json = checked(&fs::read_to_string(report).unwrap());
        assert_eq!(json["method"], method);
        assert!(
            json["processes"][0]["callers"].as_array().is_some_and(|callers| !callers.is_empty()),
            "{json}"
        );
        assert_eq!(json["reads"].is_u64(), method == "exact", "{json}");
    }
}

/// As flamegraph.pl reads it: frames and a number.
#[test]
fn folded_call_chains_begin_with_the_process_and_end_with_the_function() {
    if !has_tool(&["python3", "-c", "0"]) {
        return;
    }
    let Some((status, out, error)) = run(&["--folded", "--", "python3", "-c", READS]) else { return };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    let is_folded = |line: &str| {
        let (chain, number) = line.rsplit_once(' ').unwrap_or_default();
        let (first, last) = (chain.split(';').next(), chain.rsplit(';').next());
        first.is_some_and(|first| !first.is_empty()) && last != first && number.parse::<u64>().is_ok()
    };
    let lines: Vec<_> = out.lines().filter(|line| *line != "said").collect();
    // `python3` may be a script that a shell starts. The shell's own samples have its name.
    assert!(lines.iter().any(|line| line.starts_with("python3;")), "{out}");
    assert!(lines.iter().all(|line| is_folded(line)), "{out}");
}

/// The shell reads no clock, its child does.
#[test]
fn a_child_of_the_command_is_named() {
    if !has_tool(&["python3", "-c", "0"]) {
        return;
    }
    let script = format!("python3 -c \"{READS}\"; exit 3");
    let Some((status, out, error)) = run(&["--", "sh", "-c", &script]) else { return };
    assert_eq!((status, &*error), (Some(3), ""), "{out}");
    assert!(out.contains(" python3 (") && fits(&out), "{out}");
    assert!(out.contains("and those that it started"), "{out}");
}

#[test]
fn all_processes_are_watched_as_one_and_named() {
    let Some(reader) = Reader::start() else { return not_run_here("python3", "it does not start") };
    let Some((status, out, error)) = run(&["--all", "--duration=2"]) else { return };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    let is_named = out.contains(&format!("python3 ({})", reader.0.id())) || out.contains("python3 (");
    assert!(is_named && out.starts_with("all processes ") && fits(&out), "{out}");
}

/// A cgroup, which is removed with this.
struct Cgroup(PathBuf);

impl Cgroup {
    /// In the place where the unified hierarchy is mounted.
    fn new() -> io::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let unified = mounts.find(|fields| fields[2] == "cgroup2").ok_or(io::ErrorKind::NotFound)?;
        let folder = Path::new(unified[1]).join(format!("vdso-who-{}", std::process::id()));
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel removes a process from it some time after its end.
        while fs::remove_dir(&self.0).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) {
            sleep(Duration::from_millis(10));
        }
    }
}

/// A reader outside of the cgroup is not in the report.
#[test]
fn a_cgroup_has_its_processes_only() {
    let cgroup = match Cgroup::new() {
        Ok(cgroup) => cgroup,
        Err(error) => return not_run_here("cgroup2", error),
    };
    let (Some(reader), Some(_outside)) = (Reader::start(), Reader::start()) else {
        return not_run_here("python3", "it does not start");
    };
    let moved = fs::write(cgroup.0.join("cgroup.procs"), reader.0.id().to_string());
    if let Err(error) = moved {
        return not_run_here("cgroup2", error);
    }
    let folder = cgroup.0.to_str().unwrap();
    let Some((status, out, error)) = run(&["--cgroup", folder, "--duration=2", "--json"]) else { return };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    let json = checked(&out);
    let pids: Vec<_> = json["processes"].as_array().unwrap().iter().map(|process| &process["pid"]).collect();
    assert_eq!((json["name"].as_str(), pids), (Some(folder), vec![&Value::from(reader.0.id())]), "{json:#}");
}

/// Otherwise it looks as if it had failed to end.
#[test]
fn a_command_that_runs_longer_than_the_measurement_is_waited_for_with_a_word() {
    if !has_tool(&["sh", "-c", "true"]) {
        return;
    }
    let Some((status, _, error)) = run(&["--duration=1", "--", "sh", "-c", "sleep 3; exit 4"]) else {
        return;
    };
    assert_eq!(status, Some(4));
    assert!(error.contains("waiting for the command"), "{error}");
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
    let mut command = who(&[&pid, "--exact", "--may-end-process", "--json", "--duration=100"]);
    let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        return not_run_here("exec", "vdso-who does not start");
    };
    // It tests the host's breakpoints first.
    for is_testing in [true, false] {
        while handles(&mut child, Signal::SIGTRAP) != is_testing && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(5));
        }
    }
    // It has ended if it cannot run here.
    let pid = Pid::from_raw(child.id() as i32);
    let signal = |signal| {
        let _ = kill(pid, signal);
    };
    // Buffers of 16 MiB hold 8000 records of 2 KiB.
    sleep(Duration::from_millis(500));
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
    let json = checked(&out);
    let number = |field: &str| json[field].as_u64().unwrap();
    assert!(number("lost") > 0, "{json}");
    assert_eq!(number("reads"), number("samples") + number("lost"), "{json}");
}
