//! Programs whose reads are known.
//!
//! With --nocapture, prints the table of docs/WHO.md.

#![allow(clippy::cast_precision_loss, reason = "shares need no more digits than f64 has")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};
use serde_json::Value;
use test_support::nix::sys::resource::{UsageWho, getrusage};
use test_support::nix::sys::time::TimeValLike as _;
use test_support::nix::unistd::geteuid;
use test_support::not_run::target_tmpdir;
use test_support::{not_run, not_run_here};

const WHO: &str = env!("CARGO_BIN_EXE_vdso-who");
const ROUNDS: u64 = 400;
const SECOND: u64 = 1_000_000_000;

struct Program {
    name: &'static str,
    path: PathBuf,
    /// Go's functions have the package before them, Rust's the crate.
    package: &'static str,
    /// Empty if the program has no lines.
    source: &'static str,
    /// How many clocks a read reads. Go's `time.Now` reads two.
    clocks: u64,
}

impl Program {
    /// Runs it, watched if there are options. Returns the CPU time of a round, and the report.
    fn run(&self, options: &[&str], rounds: u64, limit: u64) -> Option<(f64, Option<Value>)> {
        let report = target_tmpdir().join(format!("who-{}.json", std::process::id()));
        let mut command = if options.is_empty() {
            Command::new(&self.path)
        } else {
            let mut command = Command::new(WHO);
            command.args(options).arg("--json").arg("--output").arg(&report).arg("--").arg(&self.path);
            command
        };
        command.args([rounds, limit].map(|number| number.to_string()));
        let seconds_before = cpu_seconds();
        let Output { status, stdout, stderr } = match command.output() {
            Ok(output) => output,
            Err(error) => {
                not_run_here("exec", format!("{}: {error}", self.name));
                return None;
            }
        };
        let error = String::from_utf8_lossy(&stderr);
        if status.code() == Some(127) {
            not_run_here("exec", format!("{}: {status}", self.name));
            return None;
        }
        if !status.success() {
            let is_lacking = ["perf_event_open", "breakpoint"].iter().any(|lack| error.contains(lack));
            assert!(is_lacking, "{}: {status}: {error}", self.name);
            not_run_here("perf", format!("{}: {error}", self.name));
            return None;
        }
        let out = String::from_utf8_lossy(&stdout);
        let rounds = out.lines().find_map(|line| line.split_once(' ')?.0.parse::<f64>().ok());
        let rounds = rounds.unwrap_or_else(|| panic!("{}: {out}{error}", self.name));
        let json: Option<Value> = (!options.is_empty())
            .then(|| serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap());
        let own_seconds = json.as_ref().and_then(|json| json["cpu_seconds"].as_f64());
        let seconds = own_seconds.unwrap_or_else(|| cpu_seconds() - seconds_before);
        let _ = fs::remove_file(report);
        Some((seconds / rounds, json))
    }

    /// The records of each of the two functions, and those of others.
    fn records(&self, report: &Value) -> [u64; 3] {
        let mut records = [0; 3];
        let processes = report["processes"].as_array().unwrap();
        for caller in processes.iter().flat_map(|process| process["callers"].as_array().unwrap()) {
            let function = caller["function"].as_str().unwrap();
            let name = function.strip_prefix(self.package).unwrap_or(function);
            let index = ["often", "seldom"].iter().position(|known| *known == name).unwrap_or(2);
            records[index] += caller["records"].as_u64().unwrap();
            if index < 2 && !self.source.is_empty() {
                let file = caller["file"].as_str().unwrap_or_default();
                assert!(file.ends_with(self.source) && caller["line"].is_u64(), "{}: {caller}", self.name);
            }
        }
        records
    }
}

/// The CPU time of the children that ended.
fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    [usage.user_time(), usage.system_time()].map(|time| time.num_microseconds() as f64 / 1e6).iter().sum()
}

/// A program: its name, a compiler with flags, a source, and what a shell does to the program `$P`.
type Recipe = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// Compiles a program; none if that is not possible here.
fn compiled((name, tool, flags, source, after): Recipe) -> Option<Program> {
    let path = target_tmpdir().join(format!("who-{}", name.replace(' ', "-")));
    let mut words = tool.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(flags.split_whitespace()).arg("-o").arg(&path).arg(source);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/callers"));
    command.env("CGO_ENABLED", "0").env("GO111MODULE", "off");
    let mut change = Command::new("sh");
    change.args(["-e", "-c", after]).env("P", &path).current_dir(path.parent().unwrap());
    let missing = [command, change].iter_mut().find_map(|command| match command.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().into()),
        Err(error) => Some(error.to_string()),
    });
    let Some(missing) = missing else {
        let (package, clocks) = match source {
            "reads.go" => ("main.", 2),
            "reads.rs" => ("reads::", 1),
            _ => ("", 1),
        };
        let has_lines = flags.contains("-g") || (source == "reads.go" && flags.is_empty());
        let has_lines = has_lines && !after.contains("gnu_debugdata");
        return Some(Program { name, path, package, source: if has_lines { source } else { "" }, clocks });
    };
    not_run_here(tool, format!("{name}: {tool} {flags}: {missing}"));
    None
}

const PROGRAMS: [Recipe; 14] = [
    ("Rust", "rustc", "-O -g", "reads.rs", ""),
    ("C", "gcc", "-O2 -g", "reads.c", ""),
    ("C, no tables", "gcc", "-O2 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables", "reads.c", ""),
    ("C, static", "gcc", "-O2 -static", "reads.c", ""),
    ("C, Zstandard", "gcc", "-O2 -g", "reads.c", r#"objcopy --compress-debug-sections=zstd "$P""#),
    ("C, debug link", "gcc", "-O2 -g", "reads.c", LINK),
    ("C, MiniDebugInfo", "gcc", "-O2 -g", "reads.c", MINI),
    ("C, musl", "musl-gcc", "-O2 -static", "reads.c", ""),
    ("C, musl, stripped tables", "musl-gcc", "-O2 -static -fno-asynchronous-unwind-tables", "reads.c", ""),
    ("C, 32-bit", "i686-linux-gnu-gcc", "-O2 -g -static", "reads.c", ""),
    ("Go", "go build", "", "reads.go", ""),
    ("Go, no DWARF", "go build", "-ldflags=-w", "reads.go", ""),
    ("Go, no symbols", "go build", "-ldflags=-s", "reads.go", ""),
    ("Go, cgo, no symbols", CGO, "-ldflags=-linkmode=external", "reads.go", r#"strip "$P""#),
];

/// Has dynamic symbols.
const CGO: &str = "env CGO_ENABLED=1 go build";

/// As dh_strip of Debian does, but beside the program.
const LINK: &str = r#"objcopy --only-keep-debug "$P" "$P.debug" && strip "$P"
objcopy --add-gnu-debuglink="$P.debug" "$P""#;

/// As find-debuginfo of Fedora does.
const MINI: &str = r#"objcopy -S --remove-section .comment --keep-symbol=often --keep-symbol=seldom "$P" "$P.mini"
xz -f "$P.mini" && strip "$P" && objcopy --add-section .gnu_debugdata="$P.mini.xz" "$P""#;

#[test]
fn counts_are_within_1_percent_and_sampled_shares_within_10() {
    println!("| Program | counted | a counted read | 75 % sampled | slower, sampled |");
    println!("|---|---|---|---|---|");
    for program in PROGRAMS.into_iter().filter_map(compiled) {
        let name = program.name;
        let Some((alone, _)) = program.run(&[], u64::MAX >> 2, SECOND / 4) else { continue };
        let mut counted = "not counted | - ".to_owned();
        if let Some((_, report)) = program.run(&["--exact"], ROUNDS, 100 * SECOND) {
            let report = report.unwrap();
            let [often, seldom, others] = program.records(&report);
            let expected = [3, 1].map(|reads| reads * ROUNDS * program.clocks);
            let near = |counted: u64, expected: u64| counted.abs_diff(expected) * 100 <= expected;
            assert!(near(often, expected[0]) && near(seldom, expected[1]), "{name}: {expected:?} {report:#}");
            // The start of a program reads the clock, too.
            assert!(others < ROUNDS * program.clocks, "{name}: {report:#}");
            let trap = report["trap_ns"].as_f64().unwrap() / 1e3;
            counted = format!("{often} of {}, {seldom} of {} | {trap:.1} us", expected[0], expected[1]);
        }

        // A busy machine runs the program for a part of the time only.
        for seconds in [1, 4, 16] {
            let Some((sampled, report)) = program.run(&["--frequency=1999"], u64::MAX >> 2, seconds * SECOND)
            else {
                return;
            };
            let report = report.unwrap();
            let [in_often, in_seldom, elsewhere] = program.records(&report);
            let all = in_often + in_seldom + elsewhere;
            if all < 1000 && seconds < 16 {
                continue;
            }
            let share = 100.0 * in_often as f64 / all as f64;
            assert!((share - 75.0).abs() < 7.5, "{name}: {share} % {report:#}");
            println!("| {name} | {counted} | {share:.1} % | {:.1} % |", 100.0 * (sampled / alone - 1.0));
            break;
        }
    }
}

/// The share of samples of the whole machine: an oracle that knows nothing of threads or processes.
struct Oracle {
    samplers: Vec<Sampler>,
}

impl Oracle {
    fn start() -> std::io::Result<Self> {
        let cpus = fs::read_dir("/sys/bus/cpu/devices")?.count();
        let open = |cpu| {
            let mut builder = Builder::new(Software::CPU_CLOCK);
            builder.any_pid().one_cpu(cpu).sample_period(997_000).exclude_idle(true).enabled(true);
            builder.sample(SampleFlag::IP | SampleFlag::TID).build()?.sampled(1 << 20)
        };
        Ok(Self { samplers: (0..cpus).map(open).collect::<Result<_, _>>()? })
    }

    /// The samples of a process, and those with a program counter in a range.
    fn samples(mut self, pid: u32, range: &std::ops::Range<u64>) -> [u64; 2] {
        let mut samples = [0; 2];
        for sampler in &mut self.samplers {
            while let Some(record) = sampler.next_record() {
                let Ok(Record::Sample(sample)) = record.parse_record() else { continue };
                if sample.pid() == Some(pid) {
                    samples[0] += 1;
                    samples[1] += u64::from(sample.ip().is_some_and(|ip| range.contains(&ip)));
                }
            }
        }
        samples
    }
}

/// Threads of 0.5 ms never fill a period of an event of their own.
#[test]
fn reads_in_short_threads_have_the_share_of_a_system_wide_count() {
    let recipe = ("threads", "gcc", "-O2 -pthread", "threads.c", "");
    let Some(program) = compiled(recipe) else { return };
    let oracle = match Oracle::start() {
        Ok(oracle) => oracle,
        Err(error) => return not_run_here("perf", error),
    };
    let mut command = Command::new(WHO);
    let output = command.args(["--json", "--"]).arg(&program.path).args(["short", "4"]);
    let output = output.output().unwrap();
    let (start, report) = split(&output);
    if report["percent"].is_null() && report["lost"] != 0 {
        return not_run("a busy machine lost records");
    }
    let pid = report["pid"].as_u64().unwrap() as u32;
    // The functions are in its first two pages.
    let [all, in_reads] = oracle.samples(pid, &(start..start + 0x2000));
    let expected = 100.0 * in_reads as f64 / all as f64;
    assert!(all > 100 && expected > 50.0, "{in_reads} of {all}");
    // On a busy machine, both are shares of a few hundred samples.
    let (percent, error) = (report["percent"].as_f64().unwrap(), report["percent_error"].as_f64().unwrap());
    assert!((percent - expected).abs() < 5.0 + 2.0 * error, "{expected} {report:#}");
}

/// A copy of this program and of another, because the folder of this may be closed for other users.
fn folder_of_others(program: &Program) -> Option<PathBuf> {
    if !geteuid().is_root() {
        not_run_here("root", "the user cannot be changed");
        return None;
    }
    let folder = PathBuf::from("/tmp").join(format!("vdso-who-{}-{}", program.name, std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::copy(WHO, folder.join("who")).unwrap();
    fs::copy(&program.path, folder.join("program")).unwrap();
    Some(folder)
}

/// Watches the program as a user without rights.
fn as_other(folder: &Path) -> Command {
    let mut command = Command::new(folder.join("who"));
    command.uid(65534).gid(65534).args(["--json", "--"]).arg(folder.join("program"));
    command
}

/// Threads that start and end, processes that fork and execute, and signals: the program ends with
/// status 0 if each did what it should, as it does alone. `VDSO_WHO_STORMS` sets the runs.
#[test]
fn a_storm_ends_as_it_does_alone() {
    let Some(program) = compiled(("storm", "gcc", "-O2 -pthread", "storm.c", "")) else { return };
    assert!(Command::new(&program.path).arg("100").output().unwrap().status.success());
    let runs = std::env::var("VDSO_WHO_STORMS").map_or(2, |runs| runs.parse().unwrap());
    let others = folder_of_others(&program);
    let watched = |options: &[&str]| {
        let mut command = Command::new(WHO);
        command.args(options).args(["--json", "--"]).arg(&program.path);
        command
    };
    let modes = [
        ("sampled by CPU", Some(watched(&[]))),
        ("sampled by thread, without rights", others.as_deref().map(as_other)),
        ("exact", Some(watched(&["--exact"]))),
    ];
    println!("| mode | runs | ended as alone | signals kept away | rounds of a run |\n|---|---|---|---|---|");
    for (mode, command) in modes {
        let Some(mut command) = command else { continue };
        let (mut signals, mut rounds) = (0, 0);
        command.arg("300");
        for run in 1..=runs {
            let output = command.output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            if output.status.code() == Some(2)
                && ["perf_event_open", "breakpoint"].iter().any(|lack| error.contains(lack))
            {
                return not_run_here("perf", error);
            }
            assert!(output.status.success() && error.is_empty(), "{mode}, run {run}: {output:?}");
            let out = String::from_utf8_lossy(&output.stdout);
            let (line, json) = out.split_once('\n').unwrap();
            rounds += line.split(' ').next().unwrap().parse::<u64>().unwrap();
            let report: Value = serde_json::from_str(json).unwrap();
            signals += report["swallowed"].as_u64().unwrap();
        }
        println!("| {mode} | {runs} | {runs} | {signals} | {} |", rounds / runs);
    }
    others.map(fs::remove_dir_all).transpose().unwrap();
}

/// A user who may not watch all processes gets no share, because the samples lack these threads.
#[test]
fn without_rights_short_threads_have_no_share() {
    let recipe = ("threads for a user", "gcc", "-O2 -pthread", "threads.c", "");
    let Some(program) = compiled(recipe) else { return };
    let Some(folder) = folder_of_others(&program) else { return };
    let output = as_other(&folder).args(["short", "2"]).output().unwrap();
    fs::remove_dir_all(folder).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) && error.contains("perf_event_open") {
        return not_run_here("perf", error);
    }
    let (_, report) = split(&output);
    assert_eq!(report["sees_all"], false, "{report:#}");
    assert!(report["percent"].is_null() && report["cpu_seconds"].as_f64() > Some(0.1), "{report:#}");
}

/// One event for each CPU needs no file for each thread.
#[test]
fn a_process_with_10000_threads_is_watched() {
    let recipe = ("many threads", "gcc", "-O2 -pthread", "threads.c", "");
    let Some(program) = compiled(recipe) else { return };
    for threads in ["2000", "10000"] {
        let mut child = Command::new(&program.path)
            .args(["idle", threads, "100"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            child.wait().unwrap();
            return not_run_here("threads", format!("{threads} threads cannot be made"));
        }
        let mut command = Command::new(WHO);
        command.args(["--duration=3", "--json", "--pid", &child.id().to_string()]);
        let output = command.output().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(2) && error.contains("perf_event_open") {
            return not_run_here("perf", error);
        }
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"));
        if report["percent"].is_null() && report["lost"] != 0 {
            return not_run("a busy machine lost records");
        }
        assert!(report["percent"].as_f64() > Some(50.0), "{report:#}");
    }
}

/// The address that the program prints, and the report.
fn split(output: &Output) -> (u64, Value) {
    let text = String::from_utf8_lossy(&output.stdout);
    let (address, json) = text.split_once('\n').unwrap_or_else(|| panic!("{output:?}"));
    (u64::from_str_radix(address, 16).unwrap(), serde_json::from_str(json).unwrap())
}

/// A program without names has addresses: those of libc's function and of its caller.
#[test]
fn a_stripped_static_program_has_the_callers_of_libcs_function() {
    const STRIP: &str = r#"nm "$P" >"$P.nm" && strip "$P""#;
    for recipe in [
        ("static and stripped, glibc", "gcc", "-O2 -static", "reads.c", STRIP),
        ("static and stripped, musl", "musl-gcc", "-O2 -static", "reads.c", STRIP),
    ] {
        let Some(program) = compiled(recipe) else { continue };
        let table = fs::read_to_string(format!("{}.nm", program.path.display())).unwrap();
        let address = |name: &str| {
            let line = table.lines().find_map(|line| line.strip_suffix(name));
            u64::from_str_radix(line.unwrap(), 16).unwrap()
        };
        let (often, seldom) = (address(" T often"), address(" T seldom"));
        let Some((_, report)) = program.run(&["--frequency=1999"], u64::MAX >> 2, SECOND) else { return };
        let report = report.unwrap();
        let caller = &report["processes"][0]["callers"][0]["called_by"]["function"];
        let offset = caller.as_str().and_then(|name| name.split_once("+0x")).map(|(_, offset)| offset);
        let offset = u64::from_str_radix(offset.unwrap_or_else(|| panic!("{report:#}")), 16).unwrap();
        // The first page of the file is loaded at a multiple of its size.
        let distance = |to: u64| (offset & 0xfff).wrapping_sub(to & 0xfff) & 0xfff;
        assert!(distance(often) < 0x80 && distance(often) < distance(seldom), "{often:#x} {report:#}");
    }
}
