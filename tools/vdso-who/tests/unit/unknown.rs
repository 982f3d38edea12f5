//! Tests of samples that may or may not be in a clock read. Each test has one cause of such
//! samples, and expects that the interval of the share contains the true share, whether all of
//! these samples are clock reads or none is.

use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::SystemTime;

use super::*;
use crate::arguments::arguments;
use crate::mapping::{FileId, Mapping};
use crate::output::table;
use crate::perf::{ENDED, Event, OTHER_NAMESPACE, Registers, Sample};
use crate::tally::{Message, count};

/// An id that no process can have.
const PID: u32 = (1 << 22) + 1;

/// Where the code of the process is.
const CODE: u64 = 0x1000;

fn sample(pid: u32, pc: u64, in_kernel: bool) -> Event {
    let registers = Registers {
        pc,
        ..Registers::default()
    };
    Event::Sample(Box::new(Sample {
        pid,
        thread: pid,
        in_kernel,
        is_64_bit: true,
        registers,
        number: None,
        first_argument: None,
        stack: vec![],
        callchain: vec![],
        kernel_chain: vec![],
    }))
}

/// A process that can be read, with 10 samples in its own code.
fn known_process() -> Vec<Event> {
    let mut events = vec![
        Event::Named(PID, "known".into(), true),
        Event::Mapped(PID, mapping("", FileId::default(), CODE)),
    ];
    for _ in 0..10 {
        events.push(sample(PID, CODE, false));
    }
    events
}

fn mapping(path: &str, file: FileId, start: u64) -> Mapping {
    Mapping {
        range: start..start + 0x1000,
        offset: 0,
        path: path.into(),
        file,
        seen: SystemTime::now(),
    }
}

/// Returns the report about the known process and other records. The CPU time is `samples` sampling
/// periods.
fn reported(others: Vec<Event>, samples: u32) -> Report {
    reported_with_gap(others, samples, 0)
}

/// Does the same as [`reported`], but a CPU had no event for `gap` sampling periods.
fn reported_with_gap(mut others: Vec<Event>, samples: u32, gap: u32) -> Report {
    let host = arguments("--all");
    let mut events = known_process();
    events.append(&mut others);
    let mut report = Report::new(&host, None, None);
    report.system_wide = true;
    report.seconds = 1.0;
    report.cpu_seconds = f64::from(samples) / f64::from(report.frequency);
    report.unwatched = Duration::from_secs(gap.into()) / report.frequency;
    let messages = events.into_iter().map(Message::Event);
    report.finish(count(&host, None, messages, &Arc::default()));
    report
}

/// Fails unless the interval of the share contains all of `truths`, and the table contains `note`.
fn assert_holds(report: &Report, truths: RangeInclusive<f64>, note: &str) {
    let share = report.whole.percent.unwrap();
    let error = report.whole.percent_error.unwrap();
    let text = table::text(report, 80);
    let holds = |truth: f64| (truth - share).abs() <= error;
    assert!(holds(*truths.start()) && holds(*truths.end()), "{text}");
    let words: Vec<_> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(note), "{note}: {text}");
}

#[test]
fn without_an_unknown_sample_the_error_is_chance() {
    let report = reported(vec![], 10);
    assert_holds(&report, 0.0..=20.0, "10 samples");
    assert!(report.whole.percent_error < Some(30.0), "{report:?}");
}

#[test]
fn samples_of_a_process_that_cannot_be_read_are_in_the_error() {
    let hidden = (0..10).map(|_| sample(PID + 1, CODE, false));
    let report = reported(hidden.collect(), 20);
    assert_holds(
        &report,
        0.0..=50.0,
        "10 samples come from processes that exited",
    );
}

/// The code before the program counter contains a `syscall` instruction, but not the number of the
/// call.
#[test]
fn samples_in_a_system_call_that_is_not_known_are_in_the_error() {
    let path = crate::common::target_tmpdir().join("unknown-call");
    let mut code = vec![0x90; 0x1000];
    code[0x100..0x105].copy_from_slice(&[0x48, 0x89, 0xf8, 0x0f, 0x05]);
    std::fs::write(&path, code).unwrap();
    let file = FileId {
        device: (0, 0),
        inode: std::fs::metadata(&path).unwrap().ino(),
    };
    let start = 0x8000;
    // After an interrupt, there is no system call before the program counter.
    for (pc, unknown) in [(start + 0x105, 10), (start + 0x205, 0)] {
        let code = mapping(path.to_str().unwrap(), file, start);
        let mut events = vec![Event::Mapped(PID, code)];
        for _ in 0..10 {
            events.push(sample(PID, pc, true));
        }
        let report = reported(events, 20);
        assert_eq!(report.unknown.calls, unknown, "{pc:x}");
        if unknown != 0 {
            assert_holds(
                &report,
                0.0..=50.0,
                "10 samples are in unknown system calls",
            );
        }
    }
}

#[test]
fn processes_of_other_pid_namespaces_are_one_row_without_a_name_of_their_own() {
    let mut events = vec![
        Event::Named(OTHER_NAMESPACE, "rustc".into(), true),
        Event::Mapped(OTHER_NAMESPACE, mapping("[vdso]", FileId::default(), CODE)),
        Event::Forked(OTHER_NAMESPACE, PID),
    ];
    for _ in 0..10 {
        events.push(sample(OTHER_NAMESPACE, CODE, false));
    }
    let report = reported(events, 20);
    assert_holds(&report, 0.0..=50.0, "--pid=host");
    let row = report.processes.iter().find(|row| row.name != "known");
    let row = row.unwrap();
    assert_eq!(row.name, "processes of other PID namespaces");
    assert_eq!(row.amounts.percent_error, Some(100.0));
}

#[test]
fn a_thread_of_a_process_that_has_ended_is_in_the_error() {
    let ended = (0..10).map(|_| sample(ENDED, CODE, false));
    let report = reported(ended.collect(), 20);
    assert_holds(
        &report,
        0.0..=50.0,
        "10 samples come from processes that exited",
    );
}

/// The process maps the memory of a sandbox, and has no vDSO.
#[test]
fn samples_in_a_sandbox_are_in_the_error_and_their_process_has_no_share() {
    let memory = "/memfd:runsc-memory (deleted)";
    let mut events = vec![
        Event::Named(PID + 1, "sandbox".into(), true),
        Event::Mapped(PID + 1, mapping(memory, FileId::default(), CODE)),
    ];
    for _ in 0..8 {
        events.push(sample(PID + 1, CODE, false));
    }
    let report = reported(events, 18);
    assert_holds(
        &report,
        0.0..=44.0,
        "8 samples come from processes in a gVisor sandbox",
    );
    let row = report.processes.iter().find(|row| row.name == "sandbox");
    assert_eq!(row.unwrap().amounts.percent, None);
}

#[test]
fn lost_records_are_in_the_error() {
    let report = reported(vec![Event::Lost(10)], 20);
    assert_holds(&report, 0.0..=50.0, "lost 10 records");
}

/// A CPU that comes back online has no event for a while. The number of missing samples is so small
/// that it could be chance, but the error must allow for them.
#[test]
fn cpu_time_on_a_cpu_without_an_event_is_in_the_error() {
    let known = || {
        let samples = (0..990).map(|_| sample(PID, CODE, false));
        samples.collect()
    };
    let report = reported_with_gap(known(), 1040, 40);
    // All of the 40 samples that are missing may be reads.
    assert_holds(&report, 0.0..=3.8, "were not watched for 0.08 s");
    assert!(report.whole.percent_error < Some(6.0), "{report:?}");
    // The process did not run for as long as the CPU had no event.
    let report = reported_with_gap(known(), 1040, 4000);
    assert!(report.whole.percent_error < Some(25.0), "{report:?}");
}

/// If a CPU goes offline, its part of the CPU time has no samples.
#[test]
fn cpu_time_without_samples_is_in_the_error() {
    let report = reported(vec![], 200);
    // All of the 190 samples that are missing may be reads.
    assert_holds(&report, 0.0..=70.0, "The samples account for only 0.02 s");
}
