//! Programs whose reads are known.
//!
//! With --nocapture, these tests print tables of MEASUREMENTS.md.

#![allow(
    clippy::cast_precision_loss,
    reason = "shares need no more digits than f64 has"
)]

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::unistd::geteuid;
use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};
use serde_json::Value;

use super::common::not_run_here;
use super::compiled::{Recipe, address_of, compiled};
use super::{PROGRAM, callers, can_be_started, command, report, watched, who};

const ROUNDS: u64 = 400;
const ENDLESS: u64 = u64::MAX >> 2;

/// Watches a program until it has made this many rounds of four reads, or has run for this many
/// seconds. Returns the report.
fn watch(path: &Path, option: &str, rounds: u64, seconds: u64) -> Option<Value> {
    let mut command = who(&[option, "--json", "--"]);
    let numbers = [rounds, seconds * 1_000_000_000].map(|number| number.to_string());
    report(command.arg(path).args(numbers).output()).map(|(_, report)| report)
}

/// Returns how many records `often`, `seldom` and all other functions have.
fn records(report: &Value, (name, _, flags, source, after): Recipe) -> [u64; 3] {
    let has_lines = flags.contains("-g") && !after.contains("gnu_debugdata") || (name == "Go");
    let mut records = [0; 3];
    for caller in callers(report) {
        let function = caller["function"]
            .as_str()
            .unwrap()
            .trim_start_matches("main.");
        let index = ["often", "seldom"]
            .iter()
            .position(|known| *known == function)
            .unwrap_or(2);
        records[index] += caller["records"].as_u64().unwrap();
        if index < 2 && has_lines {
            let file = caller["file"].as_str().unwrap_or_default();
            assert!(
                file.ends_with(source) && caller["line"].is_u64(),
                "{name}: {caller}"
            );
        }
    }
    records
}

const PROGRAMS: [Recipe; 13] = [
    ("C", "gcc", "-O2 -g", "reads.c", ""),
    (
        "C, no tables",
        "gcc",
        "-O2 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables",
        "reads.c",
        "",
    ),
    ("C, static", "gcc", "-O2 -static", "reads.c", ""),
    (
        "C, Zstandard",
        "gcc",
        "-O2 -g",
        "reads.c",
        r#"objcopy --compress-debug-sections=zstd "$P""#,
    ),
    ("C, debug link", "gcc", "-O2 -g", "reads.c", LINK),
    ("C, MiniDebugInfo", "gcc", "-O2 -g", "reads.c", MINI),
    ("C, musl", "musl-gcc", "-O2 -static", "reads.c", ""),
    (
        "C, musl, stripped tables",
        "musl-gcc",
        "-O2 -static -fno-asynchronous-unwind-tables",
        "reads.c",
        "",
    ),
    (
        "C, 32-bit",
        "i686-linux-gnu-gcc",
        "-O2 -g -static",
        "reads.c",
        "",
    ),
    ("Go", "go", "", "reads.go", ""),
    ("Go, no DWARF", "go", "-ldflags=-w", "reads.go", ""),
    ("Go, no symbols", "go", "-ldflags=-s", "reads.go", ""),
    // strip(1) removes the symbol table, but not the dynamic symbols.
    (
        "Go, cgo, no symbols",
        "go",
        "-ldflags=-linkmode=external",
        "reads.go",
        r#"strip "$P""#,
    ),
];

/// Strips a program and adds a debug link, as dh_strip of Debian does. But the debug file is in the
/// directory of the program.
const LINK: &str = r#"objcopy --only-keep-debug "$P" "$P.debug" && strip "$P"
objcopy --add-gnu-debuglink="$P.debug" "$P""#;

/// Strips a program and adds MiniDebugInfo, as find-debuginfo of Fedora does.
const MINI: &str = r#"objcopy -S --remove-section .comment --keep-symbol=often --keep-symbol=seldom "$P" "$P.mini"
xz -f "$P.mini" && strip "$P" && objcopy --add-section .gnu_debugdata="$P.mini.xz" "$P""#;

#[test]
fn counts_are_within_1_percent_and_sampled_shares_within_10() {
    println!(
        "| program | counted reads | cost of a counted read | share of `often` |\n|---|---|---|---|"
    );
    for recipe in PROGRAMS {
        let Some(path) = compiled(recipe) else {
            continue;
        };
        let name = recipe.0;
        // Go's `time.Now` reads two clocks.
        let clocks = if name.starts_with("Go") { 2 } else { 1 };
        let expected = [3, 1].map(|reads| reads * ROUNDS * clocks);
        let mut counted = "not counted | - ".to_owned();
        if let Some(report) = watch(&path, "--exact", ROUNDS, 100) {
            let [often, seldom, others] = records(&report, recipe);
            let near = |counted: u64, expected: u64| counted.abs_diff(expected) * 100 <= expected;
            assert!(
                near(often, expected[0]) && near(seldom, expected[1]),
                "{name}: {expected:?} {report:#}"
            );
            // The start of a program reads the clock as well.
            assert!(others < ROUNDS * clocks, "{name}: {report:#}");
            let trap = report["trap_ns"].as_f64().unwrap() / 1e3;
            counted = format!(
                "{often} of {}, {seldom} of {} | {trap:.1} us",
                expected[0], expected[1]
            );
        }
        // On a busy machine the program runs for only a part of the time, so one second may not be
        // enough.
        for seconds in [1, 4, 16] {
            let Some(report) = watch(&path, "--frequency=1999", ENDLESS, seconds) else {
                return;
            };
            let found = records(&report, recipe);
            let all = found.iter().sum::<u64>();
            if all >= 1000 || seconds == 16 {
                let share = 100.0 * found[0] as f64 / all as f64;
                assert!((share - 75.0).abs() < 7.5, "{name}: {share} % {report:#}");
                println!("| {name} | {counted} | {share:.1} % |");
                break;
            }
        }
    }
}

/// Makes system calls whose number is an argument, so only the kernel's half of the call chain
/// shows which call it is. The expected ranges are wide: it is only known that a call that reads
/// the clock takes at least as long as a call of getppid(2).
#[test]
fn reads_by_syscall_count_and_other_calls_do_not() {
    let Some(path) = compiled(("calls", "gcc", "-O2", "calls.c", "")) else {
        return;
    };
    for (mode, expected) in [
        ("clock", 70.0..100.0),
        ("both", 35.0..80.0),
        ("other", 0.0..2.0),
    ] {
        let mut command = who(&["--frequency=999", "--json", "--"]);
        let output = command.arg(&path).args([mode, "1"]).output();
        let Some((_, report)) = report(output) else {
            return;
        };
        if report["system_wide"] == false {
            return not_run_here("system calls are not seen without rights");
        }
        let percent = report["percent"].as_f64().unwrap();
        let error = report["percent_error"].as_f64().unwrap();
        let is_right = percent - error < expected.end && percent + error > expected.start;
        assert!(is_right && error < 50.0, "{mode}: {report:#}");
        if mode != "other" {
            assert!(percent > 20.0, "{mode}: {report:#}");
            assert_eq!(callers(&report).next().unwrap()["function"], "clocks");
        }
    }
}

/// Reads two clocks through system calls. No vDSO can read the first of them; the vDSO could read
/// the second one.
#[test]
fn a_clock_that_is_read_by_system_calls_is_named() {
    let Some(path) = compiled(("calls", "gcc", "-O2", "calls.c", "")) else {
        return;
    };
    if !cfg!(target_arch = "x86_64") {
        return not_run_here("the register of the first argument is overwritten");
    }
    for (mode, caller, expected) in [
        ("cpu", "cpu", "CLOCK_THREAD_CPUTIME_ID"),
        ("clock", "clocks", "CLOCK_MONOTONIC"),
    ] {
        let mut command = who(&["--frequency=999", "--json", "--"]);
        let output = command.arg(&path).args([mode, "1"]).output();
        let Some((_, report)) = report(output) else {
            return;
        };
        if report["system_wide"] == false {
            return not_run_here("system calls are not seen without rights");
        }
        let mut command = who(&["--frequency=999", "--folded", "--"]);
        let Some((_, out, _)) = watched(command.arg(&path).args([mode, "1"]).output()) else {
            return;
        };
        let leaf = format!(";[system call] ({expected}) ");
        assert!(out.contains(&leaf), "{out}");
        let most = callers(&report).next().unwrap();
        assert_eq!(most["function"], caller, "{report:#}");
        assert_eq!(most["clocks"][0]["name"], expected, "{report:#}");
        assert!(
            most["system_call_percent"].as_f64() > Some(50.0),
            "{report:#}"
        );
    }
}

/// Counts reads of two clocks. The register of the first argument shows which clock is read.
#[test]
fn the_clock_of_a_counted_read_is_named() {
    let Some(path) = compiled(("counted", "gcc", "-O2", "reads.c", "")) else {
        return;
    };
    if !cfg!(target_arch = "x86_64") {
        return not_run_here("the register of the first argument is known on x86_64 only");
    }
    let realtime = "import time\nfor _ in range(2000): time.time()";
    for (arguments, expected) in [
        (
            &[path.to_str().unwrap(), "400", "100000000000"][..],
            "CLOCK_MONOTONIC",
        ),
        (&["python3", "-c", realtime], "CLOCK_REALTIME"),
    ] {
        let mut command = who(&["--exact", "--json", "--"]);
        let Some((_, report)) = report(command.args(arguments).output()) else {
            return;
        };
        let most = callers(&report).next().unwrap();
        assert_eq!(most["clocks"][0]["name"], expected, "{report:#}");
        assert_eq!(most["clocks"][0]["records"], most["records"], "{report:#}");
        let mut command = who(&["--exact", "--folded", "--"]);
        let Some((_, out, _)) = watched(command.args(arguments).output()) else {
            return;
        };
        assert!(out.contains(&format!("gettime ({expected}) ")), "{out}");
    }
}

/// Runs a program, overwrites its file in place, as cp(1), scp(1) and `rsync --inplace` do, and
/// runs it again. Both versions have their functions at the same offsets, under different names.
#[test]
fn a_program_that_is_overwritten_in_place_has_the_names_of_each_version() {
    let other_names = "-O2 -g -Doften=later_often -Dseldom=later_seldom";
    let before = compiled(("before", "gcc", "-O2 -g", "reads.c", ""));
    let later = compiled(("later", "gcc", other_names, "reads.c", ""));
    let (Some(before), Some(later)) = (before, later) else {
        return;
    };
    let script = format!(
        r#"cp "{before}" "{before}.now"
        "{before}.now" {ENDLESS} 1000000000; cp "{later}" "{before}.now"; "{before}.now" {ENDLESS} 1000000000"#,
        before = before.display(),
        later = later.display(),
    );
    let output = who(&["--json", "--group-by=process", "--", "sh", "-c", &script]).output();
    let Some((_, report)) = report(output) else {
        return;
    };
    let mut rows: Vec<_> = report["processes"].as_array().unwrap().iter().collect();
    rows.retain(|row| row["name"] == "who-before.now");
    let has = |row: &Value, name: &str| {
        let callers = row["callers"].as_array().unwrap();
        callers.iter().any(|caller| caller["function"] == name)
    };
    assert_eq!(rows.len(), 2, "{report:#}");
    let [a, b] =
        ["often", "later_often"].map(|name| rows.iter().filter(|row| has(row, name)).count());
    // The functions of the first version have no names if the file was overwritten before it was
    // read.
    assert!(a <= 1 && b == 1, "{report:#}");
    assert!(
        !rows
            .iter()
            .any(|row| has(row, "often") && has(row, "later_often")),
        "{report:#}"
    );
}

/// Runs a program that moves its code to anonymous memory. That code is not just-in-time compiled.
#[test]
fn code_in_anonymous_memory_is_compiled_code_only_if_there_is_a_perf_map() {
    let Some(path) = compiled(("moved", "gcc", "-O2", "moved.c", "")) else {
        return;
    };
    let mut child = Command::new(&path);
    let mut child = child.arg("60").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.as_mut().unwrap());
    said.read_line(&mut line).unwrap();
    let output = who(&["--duration=2", "--json", "--pid", &child.id().to_string()]).output();
    child.kill().unwrap();
    child.wait().unwrap();
    let Some((_, report)) = report(output) else {
        return;
    };
    assert_eq!(line, "moved\n");
    let names: Vec<_> = callers(&report).map(|caller| &caller["function"]).collect();
    assert!(names.iter().any(|name| *name == "[anon]"), "{report:#}");
    let is_compiled = |name: &Value| name.as_str().unwrap().contains("JIT");
    assert!(!names.iter().any(|name| is_compiled(name)), "{report:#}");
}

/// Runs a program that looks, from outside, like a program in a gVisor sandbox.
#[test]
fn a_program_in_a_sandbox_has_no_share() {
    let Some(path) = compiled(("sandbox", "gcc", "-O2", "sandbox.c", "")) else {
        return;
    };
    let Some((_, report)) = report(who(&["--json", "--"]).arg(&path).arg("1").output()) else {
        return;
    };
    assert!(report["percent"].is_null(), "{report:#}");
    assert_eq!(report["processes"][0]["percent"], Value::Null);
}

/// Runs a just-in-time compiler that writes its second function into memory that it already has, so
/// the kernel reports no new mapping.
#[test]
fn just_in_time_compiled_functions_have_the_names_of_the_perf_map() {
    let Some(path) = compiled(("jit", "gcc", "-O2", "jit.c", "")) else {
        return;
    };
    for how in ["beside", "same"] {
        let arguments: &[&str] = if how == "same" {
            &["1", "same"]
        } else {
            &["1"]
        };
        let output = who(&["--frequency=999", "--json", "--"])
            .arg(&path)
            .args(arguments)
            .output();
        let Some((_, report)) = report(output) else {
            return;
        };
        let records = |name: &str| {
            let own = callers(&report).filter(|caller| caller["function"] == name);
            own.map(|caller| caller["records"].as_u64().unwrap())
                .sum::<u64>()
        };
        let [a, b] = ["jit_a", "jit_b"].map(records);
        let all = callers(&report)
            .map(|caller| caller["records"].as_u64().unwrap())
            .sum::<u64>();
        assert!(
            a * 100 > all * 35 && b * 100 > all * 35,
            "{how}: {a} and {b} of {all}: {report:#}"
        );
    }
}

/// Runs a just-in-time compiler whose map has 300,000 lines, and that changes its mappings so often
/// that the kernel reports several of them in each millisecond.
#[test]
fn a_compiler_that_is_busy_does_not_outlive_the_measurement() {
    let Some(path) = compiled(("busy jit", "gcc", "-O2", "jit.c", "")) else {
        return;
    };
    let mut child = Command::new(&path).args(["30", "busy"]).spawn().unwrap();
    let output = who(&["--duration=2", "--json", "--pid", &child.id().to_string()]).output();
    let has_ended = child.try_wait().unwrap().is_some();
    child.kill().unwrap();
    child.wait().unwrap();
    let _ = fs::remove_file(format!("/tmp/perf-{}.map", child.id()));
    let Some((_, report)) = report(output) else {
        return;
    };
    assert!(
        !has_ended && report["percent"].as_f64() > Some(10.0),
        "{report:#}"
    );
}

/// The program has no symbols, so the report shows addresses. Expects that the caller of libc's
/// function is at an address in `often`.
#[test]
fn a_stripped_static_program_has_the_callers_of_libcs_function() {
    const STRIP: &str = r#"nm "$P" >"$P.nm" && strip "$P""#;
    for recipe in [
        (
            "static and stripped, glibc",
            "gcc",
            "-O2 -static",
            "reads.c",
            STRIP,
        ),
        (
            "static and stripped, musl",
            "musl-gcc",
            "-O2 -static",
            "reads.c",
            STRIP,
        ),
    ] {
        let Some(path) = compiled(recipe) else {
            continue;
        };
        let [often, seldom] = ["often", "seldom"].map(|name| address_of(&path, name));
        let Some(report) = watch(&path, "--frequency=1999", ENDLESS, 1) else {
            return;
        };
        let caller = callers(&report)
            .next()
            .and_then(|caller| caller["called_by"]["function"].as_str());
        let (_, offset) = caller
            .and_then(|name| name.split_once("+0x"))
            .expect("no address");
        // The start of the file is loaded at a multiple of the page size, so offset and address
        // agree within a page.
        let offset = u64::from_str_radix(offset, 16).unwrap();
        let distance = |to: u64| (offset & 0xfff).wrapping_sub(to & 0xfff) & 0xfff;
        assert!(
            distance(often) < 0x80 && distance(often) < distance(seldom),
            "{often:#x} {report:#}"
        );
    }
}

/// Moves the debug information to another file, and writes a `debuginfod-find` that finds this
/// file, but only under one build id.
const DEBUGINFOD: &str = r#"objcopy --only-keep-debug "$P" "$P.debug" && strip "$P"
objcopy --remove-section=.note.gnu.build-id "$P.debug" "$P.other"
rm -rf "$P.path" && mkdir "$P.path"
cat >"$P.path/debuginfod-find" <<END
#!/bin/sh
echo "\$@" >>"$P.path/log"
[ "\$2" = 0123456789abcdef ] && echo "\$DEBUGINFOD_URLS"
END
chmod +x "$P.path/debuginfod-find""#;

/// Uses the fake `debuginfod-find`, which takes the path of the debug file as the address of the
/// server. Without --debuginfod, vdso-who must not run it.
#[test]
fn a_debuginfod_server_is_asked_with_the_flag_only_and_its_failure_is_no_error() {
    let flags = "-O2 -g -Wl,--build-id=0x0123456789abcdef";
    let Some(path) = compiled(("debuginfod", "gcc", flags, "reads.c", DEBUGINFOD)) else {
        return;
    };
    let of = |extension: &str| format!("{}.{extension}", path.display());
    let search = format!("{}:{}", of("path"), std::env::var("PATH").unwrap());
    for (option, debug_file, has_names) in [
        ("--frequency=1999", of("debug"), false),
        ("--debuginfod", of("debug"), true),
        ("--debuginfod", of("missing"), false),
        // This file does not contain the build id, so it must not be used.
        ("--debuginfod", of("other"), false),
    ] {
        let mut command = who(&[option, "--json", "--"]);
        command
            .env("PATH", &search)
            .env("DEBUGINFOD_URLS", &debug_file);
        let output = command
            .arg(&path)
            .args([ENDLESS, 1_000_000_000].map(|number| number.to_string()))
            .output();
        let Some((_, report)) = report(output) else {
            return;
        };
        let is_named = |caller: &Value| caller["function"] == "often" && caller["line"].is_u64();
        assert_eq!(
            callers(&report).any(is_named),
            has_names,
            "{debug_file}: {report:#}"
        );
        let log = fs::read_to_string(path.with_extension("path").join("log")).unwrap_or_default();
        let asked = log.lines().any(|line| line == "debuginfo 0123456789abcdef");
        assert_eq!(asked, option == "--debuginfod", "{log}");
    }
}

/// Writes a `debuginfod-find` that waits until the process has ended and records when that was. It
/// then takes 3 s more and finds nothing.
const SLOW_DEBUGINFOD: &str = r#"strip "$P" && rm -rf "$P.path" "$P.ended" && mkdir "$P.path"
cat >"$P.path/debuginfod-find" <<END
#!/bin/sh
[ "\$2" = 0123456789abcde0 ] || exit 1
for i in \$(seq 100); do
    grep -q "^State:.Z" "/proc/\$(cat "$P.pid")/status" && break
    sleep 0.1
done
date +%s.%N >"$P.ended"
sleep 3
exit 1
END
chmod +x "$P.path/debuginfod-find""#;

/// In the first round, the watched process is the program, and ends with it. In the second round it
/// is a shell, which ends while the program goes on.
#[test]
fn a_process_that_ends_while_names_are_read_is_measured_until_its_end() {
    let flags = "-O2 -Wl,--build-id=0x0123456789abcde0";
    let Some(path) = compiled(("slow debuginfod", "gcc", flags, "reads.c", SLOW_DEBUGINFOD)) else {
        return;
    };
    let path = path.display();
    let search = format!("{path}.path:{}", std::env::var("PATH").unwrap());
    for (program, end) in [("exec ", ""), ("", " & sleep 0.5")] {
        let mut command = who(&["--debuginfod", "--json", "--", "sh", "-c"]);
        command.arg(format!(
            r#"echo $$ >"{path}.pid"; {program}"{path}" {ENDLESS} 1000000000{end}"#
        ));
        let start = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs_f64();
        let output = command
            .env("PATH", &search)
            .env("DEBUGINFOD_URLS", "-")
            .output();
        let Some((_, report)) = report(output) else {
            return;
        };
        let ended: f64 = fs::read_to_string(format!("{path}.ended"))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        // `debuginfod-find` took 3 s more, which must not be part of the measurement.
        let [seconds, cpu] = ["seconds", "cpu_seconds"].map(|name| report[name].as_f64().unwrap());
        assert!(
            seconds < ended - start + 1.0 && cpu < seconds + 0.1,
            "{ended} - {start}: {report:#}"
        );
        assert!(
            report["percent"].is_f64() && report["lost"] == 0,
            "{report:#}"
        );
    }
}

/// Samples of the whole machine, one event for each CPU. The test computes the right share from
/// them, whatever threads and processes there are.
struct Oracle {
    samplers: Vec<Sampler>,
}

impl Oracle {
    fn start() -> std::io::Result<Self> {
        let cpus = fs::read_dir("/sys/bus/cpu/devices")?.count();
        let open = |cpu| {
            let mut builder = Builder::new(Software::CPU_CLOCK);
            builder
                .any_pid()
                .one_cpu(cpu)
                .sample_period(997_000)
                .exclude_idle(true)
                .enabled(true);
            builder.exclude_kernel(false);
            builder
                .sample(SampleFlag::IP | SampleFlag::TID)
                .build()?
                .sampled(1 << 20)
        };
        Ok(Self {
            samplers: (0..cpus).map(open).collect::<Result<_, _>>()?,
        })
    }

    /// Returns how many samples a process has, and how many of them have a program counter in a
    /// range.
    fn samples(mut self, pid: u32, range: &std::ops::Range<u64>) -> [u64; 2] {
        let mut samples = [0; 2];
        for sampler in &mut self.samplers {
            while let Some(record) = sampler.next_record() {
                let Ok(Record::Sample(sample)) = record.parse_record() else {
                    continue;
                };
                if sample.pid() == Some(pid) {
                    samples[0] += 1;
                    samples[1] += u64::from(sample.ip().is_some_and(|ip| range.contains(&ip)));
                }
            }
        }
        samples
    }
}

/// Each thread lives for 0.5 ms, less than a sampling period. So an event for each thread would
/// never take a sample.
#[test]
fn reads_in_short_threads_have_the_share_of_a_system_wide_count() {
    let Some(path) = compiled(("threads", "gcc", "-O2 -pthread", "threads.c", "")) else {
        return;
    };
    let oracle = match Oracle::start() {
        Ok(oracle) => oracle,
        Err(error) => return not_run_here(error),
    };
    let output = who(&["--json", "--"])
        .arg(path)
        .args(["short", "4"])
        .output();
    let Some((said, report)) = report(output) else {
        return;
    };
    // The program has printed the address of the vDSO, whose functions are in its first two pages.
    let start = u64::from_str_radix(said.trim(), 16).unwrap();
    let [all, in_reads] = oracle.samples(
        report["pid"].as_u64().unwrap() as u32,
        &(start..start + 0x2000),
    );
    let expected = 100.0 * in_reads as f64 / all as f64;
    assert!(all > 100 && expected > 50.0, "{in_reads} of {all}");
    // On a busy machine, both shares come from only a few hundred samples.
    let (percent, error) = (
        report["percent"].as_f64().unwrap(),
        report["percent_error"].as_f64().unwrap(),
    );
    assert!(
        (percent - expected).abs() < 2.0 + 2.0 * error,
        "{expected} {report:#}"
    );
}

/// With one event for each CPU, vdso-who does not need a file for each thread, so the limit on open
/// files does not matter.
#[test]
fn a_process_with_10000_threads_is_watched() {
    let Some(path) = compiled(("many threads", "gcc", "-O2 -pthread", "threads.c", "")) else {
        return;
    };
    for threads in ["2000", "10000"] {
        let mut child = Command::new(&path);
        let mut child = child
            .args(["idle", threads, "100"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let output = who(&["--duration=3", "--json", "--pid", &child.id().to_string()]).output();
        child.kill().unwrap();
        child.wait().unwrap();
        if line.is_empty() {
            return not_run_here(format!("{threads} threads cannot be made"));
        }
        let Some((_, report)) = report(output) else {
            return;
        };
        assert!(report["percent"].as_f64() > Some(50.0), "{report:#}");
    }
}

/// Copies of a program and of vdso-who in /tmp, because other users may have no access to the
/// directory of the originals. The copies are removed when this is dropped.
struct Copies(PathBuf);

impl Copies {
    fn of(path: &Path) -> Option<Self> {
        if !geteuid().is_root() {
            not_run_here("the user cannot be changed");
            return None;
        }
        // To run a program as another user, std calls execvp(3).
        if !can_be_started() {
            return None;
        }
        let name = path.file_name()?.to_str()?;
        let directory = PathBuf::from(format!("/tmp/vdso-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        for (from, name) in [(Path::new(PROGRAM), "who"), (path, "program")] {
            command::write(&directory.join(name), fs::read(from).unwrap()).unwrap();
        }
        Some(Self(directory))
    }

    /// Returns the command that watches the program as a user without privileges.
    fn watch(&self) -> Command {
        let mut command = Command::new(self.0.join("who"));
        command
            .uid(65534)
            .gid(65534)
            .args(["--json", "--"])
            .arg(self.0.join("program"));
        command
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Watches as a user who is not allowed to watch all processes. There is no share, because threads
/// that live for such a short time have no samples.
#[test]
fn without_rights_short_threads_have_no_share() {
    let recipe = ("threads for a user", "gcc", "-O2 -pthread", "threads.c", "");
    let Some(copies) = compiled(recipe).and_then(|path| Copies::of(&path)) else {
        return;
    };
    let Some((_, report)) = report(copies.watch().args(["short", "2"]).output()) else {
        return;
    };
    assert_eq!(report["system_wide"], false, "{report:#}");
    assert!(
        report["percent"].is_null() && report["cpu_seconds"].as_f64() > Some(0.1),
        "{report:#}"
    );
}

/// Replaces the file of a running program, as a package manager does. Without privileges, only
/// /proc/PID/exe leads to the old file.
#[test]
fn without_rights_a_program_whose_file_was_replaced_keeps_its_names() {
    let other_names = "-O2 -g -Doften=later_often -Dseldom=later_seldom";
    let before = compiled(("replaced", "gcc", "-O2 -g", "reads.c", ""));
    let later = compiled(("later", "gcc", other_names, "reads.c", ""));
    let (Some(before), Some(later)) = (before, later) else {
        return;
    };
    let Some(copies) = Copies::of(&before) else {
        return;
    };
    let program = copies.0.join("program");
    let mut child = Command::new(&program);
    let limits = [ENDLESS, 60_000_000_000].map(|number| number.to_string());
    let child = child
        .uid(65534)
        .gid(65534)
        .args(limits)
        .stdout(Stdio::null());
    let mut child = child.spawn().unwrap();
    let new = copies.0.join("new");
    command::write(&new, fs::read(later).unwrap()).unwrap();
    fs::rename(new, program).unwrap();
    let mut who = Command::new(copies.0.join("who"));
    who.uid(65534)
        .gid(65534)
        .args(["--json", "--duration=2", "--pid"]);
    let output = who.arg(child.id().to_string()).output();
    child.kill().unwrap();
    child.wait().unwrap();
    let Some((_, report)) = report(output) else {
        return;
    };
    let names: Vec<_> = callers(&report).map(|caller| &caller["function"]).collect();
    assert!(names.iter().any(|name| *name == "often"), "{report:#}");
    assert!(
        !names.iter().any(|name| *name == "later_often"),
        "{report:#}"
    );
}

/// Runs a setuid program as a user without privileges. If vdso-who traced the program, it would not
/// get the privileges of its file.
#[test]
fn a_setuid_command_keeps_its_rights() {
    const ID: &str = "/usr/bin/id";
    if let Err(error) = fs::metadata(ID) {
        return not_run_here(error);
    }
    let Some(copies) = Copies::of(Path::new(ID)) else {
        return;
    };
    let program = copies.0.join("program");
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).unwrap();
    let alone = Command::new(&program)
        .arg("-u")
        .uid(65534)
        .output()
        .unwrap();
    if alone.stdout != b"0\n" {
        return not_run_here("the file system ignores the bit");
    }
    let Some((said, report)) = report(copies.watch().arg("-u").output()) else {
        return;
    };
    assert_eq!(
        (&*said, &report["has_vdso"]),
        ("0\n", &Value::Bool(true)),
        "{report:#}"
    );
}

/// Watches a program that starts threads, forks, executes itself and sends itself signals. It ends
/// with status 0 if all of these did what they should, as they do when it is not watched.
/// `VDSO_WHO_STORMS` sets the number of runs.
#[test]
fn a_storm_ends_as_it_does_alone() {
    let Some(path) = compiled(("storm", "gcc", "-O2 -pthread", "storm.c", "")) else {
        return;
    };
    assert!(
        Command::new(&path)
            .arg("100")
            .output()
            .unwrap()
            .status
            .success()
    );
    let runs = std::env::var("VDSO_WHO_STORMS").map_or(2, |runs| runs.parse().unwrap());
    let copies = Copies::of(&path);
    let watched = |options: &[&str]| {
        let mut command = who(options);
        command.args(["--json", "--"]).arg(&path);
        command
    };
    println!(
        "| mode | runs | status 0 | SIGTRAP swallowed | rounds of a run |\n|---|---|---|---|---|"
    );
    for (mode, command) in [
        ("sampled by CPU", Some(watched(&[]))),
        (
            "sampled by thread, without rights",
            copies.as_ref().map(Copies::watch),
        ),
        ("exact", Some(watched(&["--exact"]))),
    ] {
        let Some(mut command) = command else { continue };
        let (mut signals, mut rounds) = (0, 0);
        command.arg("300");
        for _ in 0..runs {
            let Some((said, report)) = report(command.output()) else {
                return;
            };
            rounds += said.split(' ').next().unwrap().parse::<u64>().unwrap();
            signals += report["swallowed"].as_u64().unwrap();
        }
        println!(
            "| {mode} | {runs} | {runs} | {signals} | {} |",
            rounds / runs
        );
    }
}
