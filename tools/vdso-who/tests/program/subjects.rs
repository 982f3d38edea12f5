//! Tests of which processes are watched: a command and its children, a process, a cgroup, or the
//! host.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use roxmltree::{Document, ParsingOptions};
use serde_json::Value;

use super::common::{has_tool, not_run_here, target_tmpdir};
use super::schema::checked;
use super::{fits, report, run, watched, who};

/// Reads clocks for two seconds.
const READS: &str =
    "import time\nprint('said')\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass";

/// Expects lines in the format of flamegraph.pl: the frames, separated by `;`, and a number.
#[test]
fn folded_call_chains_begin_with_the_process_and_end_with_the_function() {
    let Some((status, out, error)) = run(&["--folded", "--", "python3", "-c", READS]) else {
        return;
    };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    let is_folded = |line: &str| {
        let (chain, number) = line.rsplit_once(' ').unwrap_or_default();
        let (first, last) = (chain.split(';').next(), chain.rsplit(';').next());
        first.is_some_and(|first| !first.is_empty())
            && last != first
            && number.parse::<u64>().is_ok()
    };
    let lines: Vec<_> = out.lines().filter(|line| *line != "said").collect();
    // `python3` may be a script that a shell runs. So not every line begins with `python3`.
    assert!(
        lines.iter().any(|line| line.starts_with("python3;")),
        "{out}"
    );
    assert!(lines.iter().all(|line| is_folded(line)), "{out}");
}

/// Runs a shell that reads no clock, but whose child does.
#[test]
fn a_child_of_the_command_is_named() {
    if !has_tool("python3", &["--version"]) {
        return;
    }
    let script = format!("python3 -c \"{READS}\"; exit 3");
    let Some((status, out, error)) = run(&["--", "sh", "-c", &script]) else {
        return;
    };
    assert_eq!((status, &*error), (Some(3), ""), "{out}");
    assert!(
        out.contains(" python3 (") && out.contains("and its descendants") && fits(&out),
        "{out}"
    );
}

/// Watches all processes by name, with `top`, by process and by unit. `top` prints a table for each
/// interval, the other commands print only one.
#[test]
fn all_processes_are_watched_as_one_and_named() {
    let Some(_reader) = Reader::start() else {
        return;
    };
    for arguments in [
        &["--all", "--duration=2"][..],
        &["top", "-i1", "-d", "4"],
        &["-a", "--group-by=process", "-d1"],
    ] {
        let Some((status, out, error)) = run(arguments) else {
            return;
        };
        assert_eq!((status, &*error), (Some(0), ""), "{out}");
        let tables = out.matches("all processes spend ").count();
        assert!(out.contains("python3 (") && fits(&out), "{out}");
        assert!(
            if arguments[0] == "top" {
                (1..=5).contains(&tables)
            } else {
                tables == 1
            },
            "{out}"
        );
    }
    let Some((_, out, _)) = run(&["--all", "--duration=1", "--group-by=unit", "--json"]) else {
        return;
    };
    let json = checked(&out);
    let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let unit = json["processes"][0]["name"].as_str().unwrap();
    assert!(
        cgroup.contains(unit.split([' ', ',']).next_back().unwrap()) || unit == "[no unit]",
        "{unit}: {cgroup}"
    );
}

/// Reads the output as a collector of metrics does: each line is one report. The last report can
/// cover only a part of an interval.
#[test]
fn top_prints_a_line_of_json_for_each_interval() {
    let Some((status, out, error)) = run(&["top", "--json", "--duration=4"]) else {
        return;
    };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    let reports: Vec<_> = out.lines().map(checked).collect();
    assert!((2..=5).contains(&reports.len()), "{out}");
    let mut last = 0.0;
    for report in &reports {
        let time = report["time"].as_f64().unwrap();
        assert!(last < time, "{last}: {report:#}");
        last = time;
    }
}

/// Runs a program with a thread that gives itself a name.
#[test]
fn a_thread_has_a_row_with_its_name() {
    let script = "\
import threading, time
def work():
    with open('/proc/thread-self/comm', 'w') as file: file.write('reader')
    end = time.monotonic() + 2
    while time.monotonic() < end: pass
thread = threading.Thread(target=work)
thread.start()
thread.join()";
    let mut command = who(&["--json", "--group-by=thread", "--depth=1", "--"]);
    let Some((_, report)) = report(command.args(["python3", "-c", script]).output()) else {
        return;
    };
    let rows = report["processes"].as_array().unwrap();
    let Some(row) = rows.iter().find(|row| row["name"] == "reader") else {
        panic!("{report:#}");
    };
    assert!(row["thread"].as_u64() > row["pid"].as_u64(), "{row:#}");
    for caller in row["callers"].as_array().unwrap() {
        assert!(caller["called_by"].is_null(), "{caller:#}");
    }
}

/// Watches a process that only waits. One of its descendants is already reading the clock, and
/// another one starts during the measurement.
#[test]
fn the_descendants_of_a_process_have_a_row_each_unless_they_are_not_wanted() {
    let script = "\
import os, time
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
    os._exit(0)
if not os.fork():
    if not os.fork(): work(60)
    os.wait()
print(flush=True)
time.sleep(1)
if not os.fork(): work(60)
os.wait()";
    for (option, workers) in [
        ("--duration=3", 2),
        ("--no-children", 0),
        ("--group-by=name", 1),
    ] {
        let Some(mut reader) = Reader::run(script) else {
            return;
        };
        let pid = reader.0.id();
        let output = who(&["-p", &pid.to_string(), "--json", option, "--duration=3"]
            [..if workers == 2 { 4 } else { 5 }])
        .output();
        let children = family(pid);
        let _ = reader.0.kill();
        for child in &children {
            let _ = kill(Pid::from_raw(*child), Signal::SIGKILL);
        }
        let Some((_, json)) = report(output) else {
            return;
        };
        let rows: Vec<_> = json["processes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["records"] != 0)
            .collect();
        let is_child =
            |row: &&Value| workers == 1 || children.iter().any(|child| row["pid"] == *child);
        assert!(
            rows.len() == workers && rows.iter().all(is_child),
            "{option}: {children:?} {json:#}"
        );
        // On a virtual machine, a sample can stand for less CPU time than a sampling period.
        let [cpu, samples] = ["cpu_seconds", "samples"].map(|field| json[field].as_f64().unwrap());
        assert!(
            (cpu * 499.0 - samples).abs() < samples.max(50.0),
            "{option}: {json:#}"
        );
    }
}

/// Returns the descendants of a process.
fn family(pid: u32) -> Vec<i32> {
    let children =
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children: Vec<u32> = children
        .split_whitespace()
        .map(|child| child.parse().unwrap())
        .collect();
    children
        .into_iter()
        .flat_map(|child| [vec![child as i32], family(child)].concat())
        .collect()
}

/// Expects a well-formed SVG file that contains the process, the function that reads the clock, the
/// title, and the legend of the colours.
#[test]
fn a_file_whose_name_ends_with_svg_gets_a_flame_graph() {
    let path = target_tmpdir().join("who.svg");
    let script = format!(
        "{READS}\nimport ctypes\nlibc = ctypes.CDLL(None)\nfor i in range(0): libc.syscall(228)"
    );
    let Some((status, out, error)) = run(&[
        "--json",
        "-o",
        path.to_str().unwrap(),
        "python3",
        "-c",
        &script,
    ]) else {
        return;
    };
    assert_eq!((status, &*out, &*error), (Some(0), "said\n", ""));
    let svg = fs::read_to_string(&path).unwrap();
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let graph = Document::parse_with_options(&svg, options)
        .unwrap_or_else(|error| panic!("{error}: {svg}"));
    let titles = graph
        .descendants()
        .filter(|node| node.has_tag_name("title"));
    let titles: Vec<_> = titles.filter_map(|title| title.text()).collect();
    let has = |function: &str| {
        titles
            .iter()
            .any(|title| title.starts_with(function) && title.contains(" samples in clock reads"))
    };
    assert!(
        has("python3")
            && (has("__vdso_clock_gettime") || has("[system call]") || has("clock_gettime")),
        "{titles:#?}"
    );
    assert!(
        svg.contains("reading clocks") && svg.contains("green: a read in the vDSO"),
        "{svg}"
    );
}

/// Expects that the table is printed instead of a graph, that the status is the command's, and that
/// no empty file is left.
#[test]
fn without_a_clock_read_there_is_a_verdict_and_no_flame_graph() {
    let path = target_tmpdir().join("none.SVG");
    let _ = fs::remove_file(&path);
    let name = path.to_str().unwrap();
    let Some((status, out, error)) = run(&["-o", name, "--", "sh", "-c", "exit 3"]) else {
        return;
    };
    assert_eq!((status, &*error), (Some(3), ""), "{out}");
    assert!(out.starts_with("process ") && !path.exists(), "{out}");
}

/// Watches a process whose earlier child used 2 s of CPU time before the measurement, and which
/// starts short-lived children. The CPU time must not contain these 2 s.
#[test]
fn the_cpu_time_of_a_running_process_is_its_own() {
    let script = "\
import os, time
if not os.fork():
    while time.process_time() < 2: pass
    os._exit(0)
os.wait()
print(flush=True)
while True:
    os.posix_spawnp('true', ['true'], os.environ)
    os.wait()
    time.sleep(0.05)";
    let Some(reader) = Reader::run(script) else {
        return;
    };
    let pid = format!("--pid={}", reader.0.id());
    let Some((_, json)) = report(who(&[&pid, "--duration=1", "--json"]).output()) else {
        return;
    };
    assert!(json["cpu_seconds"].as_f64() < Some(2.0), "{json:#}");
}

/// The command runs two children, each of which uses 1 s of CPU time. Children have no breakpoints,
/// so their reads are not counted, and their CPU time must not be counted either.
#[test]
fn the_cpu_time_of_counted_reads_is_the_commands_own() {
    if !has_tool("python3", &["--version"]) {
        return;
    }
    let burn = "import time\nwhile time.process_time() < 1: pass";
    let script = format!("python3 -c '{burn}'; python3 -c '{burn}'; :");
    let Some((_, json)) = report(who(&["--exact", "--json", "--", "sh", "-c", &script]).output())
    else {
        return;
    };
    let cpu = json["cpu_seconds"].as_f64().unwrap();
    assert!(cpu > 0.0 && cpu < 1.0, "{json:#}");
}

/// A cgroup, which is removed when this is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a cgroup in the cgroup v2 hierarchy, wherever that is mounted.
    fn new() -> io::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let mut mounts = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>());
        let unified = mounts
            .find(|fields| fields[2] == "cgroup2")
            .ok_or(io::ErrorKind::NotFound)?;
        let directory = Path::new(unified[1]).join(format!("vdso-who-{}", std::process::id()));
        fs::create_dir(&directory)?;
        Ok(Self(directory))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Directly after a process has ended, the kernel may still count it as a member of the
        // cgroup.
        while fs::remove_dir(&self.0)
            .is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
        {
            sleep(Duration::from_millis(10));
        }
    }
}

/// Also runs a process outside of the cgroup, which must not be in the report. Then removes the
/// cgroup during a measurement, as systemd does when it stops a service.
#[test]
fn a_cgroup_has_its_processes_only_and_ends_the_measurement_when_it_is_removed() {
    let cgroup = match Cgroup::new() {
        Ok(cgroup) => cgroup,
        Err(error) => return not_run_here(error),
    };
    let (Some(reader), Some(_outside)) = (Reader::start(), Reader::start()) else {
        return;
    };
    if let Err(error) = fs::write(cgroup.0.join("cgroup.procs"), reader.0.id().to_string()) {
        return not_run_here(error);
    }
    let directory = cgroup.0.to_str().unwrap();
    let output = who(&["--cgroup", directory, "--duration=2", "--json"]).output();
    let Some((_, json)) = report(output) else {
        return;
    };
    let pids: Vec<_> = json["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| &process["pid"])
        .collect();
    assert_eq!(
        (json["name"].as_str(), pids),
        (Some(directory), vec![&Value::from(reader.0.id())]),
        "{json:#}"
    );
    let Some(child) = measuring(&mut who(&[
        "--cgroup",
        directory,
        "--duration=60",
        "--json",
    ])) else {
        return;
    };
    let used = || {
        let stat = fs::read_to_string(cgroup.0.join("cpu.stat")).unwrap();
        let micros = stat
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "))
            .unwrap();
        Duration::from_micros(micros.parse().unwrap())
    };
    let before = used();
    while used() < before + Duration::from_millis(300) {
        sleep(Duration::from_millis(5));
    }
    drop((reader, cgroup));
    let Some((_, json)) = report(child.wait_with_output()) else {
        return;
    };
    let [seconds, cpu] = ["seconds", "cpu_seconds"].map(|field| json[field].as_f64().unwrap());
    assert!(seconds < 60.0 && cpu > 0.0, "{json:#}");
}

/// A process that reads clocks until this is dropped.
struct Reader(Child);

impl Reader {
    fn start() -> Option<Self> {
        Self::run("import time\nprint(flush=True)\nwhile True: time.monotonic()")
    }

    /// Starts a Python script, and waits until it prints that it is ready.
    fn run(script: &str) -> Option<Self> {
        let mut command = Command::new("python3");
        let started = command.args(["-c", script]).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(not_run_here).ok()?;
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

/// Starts vdso-who, and waits until it has opened its events.
fn measuring(command: &mut Command) -> Option<Child> {
    let started = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(not_run_here).ok()?;
    let has_events = |child: &Child| {
        let files = fs::read_dir(format!("/proc/{}/fd", child.id()))
            .into_iter()
            .flatten()
            .flatten();
        let mut files = files.filter_map(|file| fs::read_link(file.path()).ok());
        files.any(|file| file.ends_with("anon_inode:[perf_event]"))
    };
    while !has_events(&child) && child.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(5));
    }
    Some(child)
}

#[test]
fn an_interrupt_ends_the_measurement_and_prints_what_there_is() {
    let Some(reader) = Reader::start() else {
        return;
    };
    let pid = format!("--pid={}", reader.0.id());
    let Some(child) = measuring(&mut who(&[&pid, "--json", "--duration=100"])) else {
        return;
    };
    sleep(Duration::from_millis(500));
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
    let Some((_, json)) = report(child.wait_with_output()) else {
        return;
    };
    assert!(
        json["seconds"].as_f64() < Some(100.0) && json["records"] != 0,
        "{json:#}"
    );
}

/// Presses the key on a terminal of 40 columns once a table is shown.
#[test]
fn the_key_q_ends_top() {
    const SCRIPT: &str = "\
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], ['vdso-who', 'top'])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 14, 40, 0, 0))
shown = b''
try:
    while b'all processes ' not in shown and b'perf_event' not in shown: shown += os.read(terminal, 4096)
    os.write(terminal, b'q')
    while True: shown += os.read(terminal, 4096)
except OSError:
    pass
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";
    if !super::can_be_started() {
        return;
    }
    let mut python = Command::new("python3");
    let Some((status, out, error)) = watched(python.args(["-c", SCRIPT, super::PROGRAM]).output())
    else {
        return;
    };
    if out.contains("perf_event_open") {
        return not_run_here(out);
    }
    assert_eq!(status, Some(0), "{out}{error}");
    let fits = |line: &str| line.trim_end().chars().count() <= 40;
    let screen = out.split("\u{1b}[2J").nth(1).unwrap();
    assert!(screen.lines().all(fits), "{screen}");
}

/// Stops the output of the terminal with Ctrl-S, so that vdso-who cannot end when the first signal
/// arrives. The second signal then ends it.
#[test]
fn a_second_interrupt_leaves_a_terminal_with_echo() {
    const SCRIPT: &str = "\
import os, pty, signal, sys, termios, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], ['vdso-who', 'top'])
has_echo = lambda: bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
shown = b''
try:
    while b'all processes ' not in shown and b'perf_event' not in shown: shown += os.read(terminal, 4096)
    before = has_echo()
    os.write(terminal, b'\\x13')
    time.sleep(2)
    os.kill(pid, signal.SIGINT)
    end = time.monotonic() + 10
    while not has_echo() and time.monotonic() < end: time.sleep(0.05)
    os.kill(pid, signal.SIGINT)
    os.waitpid(pid, 0)
    shown += f'\\n{before} {has_echo()}'.encode()
except OSError as error:
    shown += str(error).encode()
sys.stdout.buffer.write(shown)";
    if !super::can_be_started() {
        return;
    }
    let mut python = Command::new("python3");
    let Some((_, out, error)) = watched(python.args(["-c", SCRIPT, super::PROGRAM]).output())
    else {
        return;
    };
    if out.contains("perf_event_open") {
        return not_run_here(out);
    }
    assert!(out.ends_with("False True"), "{out}{error}");
}

/// Sends SIGTERM, as timeout(1) and systemd do, after the measurement is over.
#[test]
fn a_termination_ends_the_command_also_after_the_measurement() {
    let mut command = who(&["--duration=1", "--", "sleep", "20"]);
    let Some(mut child) = measuring(&mut command) else {
        return;
    };
    // After the measurement, vdso-who prints that it waits for the command.
    let _ = child.stderr.as_mut().unwrap().read_exact(&mut [0]);
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
    let Some((status, ..)) = watched(child.wait_with_output()) else {
        return;
    };
    assert_eq!(status, Some(143));
}
