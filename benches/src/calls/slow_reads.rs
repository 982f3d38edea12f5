//! The cost of a read of the counter clock that the current segment does not answer.

#![allow(unsafe_code, reason = "setrlimit(2)")]
#![allow(
    clippy::inline_always,
    reason = "otherwise the compiler inlines only the shorter one of two reads"
)]

use std::thread;
use std::time::Duration;

use vdso_time::ClockId;
use vdso_time_counter as counter;

use super::keep::Keep as _;
use super::{floor, keep, ticks, ticks_ordered};
use crate::harness::samples::{self, OURS, say};
use crate::harness::{Contender, Row, median};

/// The row of the calls that make a segment.
pub const MAKER: &str = "a call that makes a segment";
/// The rows of a reader that sleeps between two reads, and for how many milliseconds.
pub const SPARSE: [(&str, u64); 3] = [
    ("a read each 1 ms", 1),
    ("a read each 10 ms", 10),
    ("a read each 100 ms", 100),
];
/// The rows of the clocks in a process that cannot learn the kernel's clock source.
pub const WITHOUT_COUNTER: [&str; 2] = [
    "CounterMonotonicUnordered::now(), without a counter",
    "CounterMonotonic::now(), without a counter",
];

/// The contender that the rows are compared with, through the vDSO.
pub const VDSO: &str = "clock_gettime";
/// The contender that needs one cache line to decide that it must ask the vDSO, and keeps the
/// answer in that line.
pub const RESTED: &str = "a line and the vDSO";

/// Returns the rows of [`print()`].
pub fn names() -> Vec<&'static str> {
    let mut names = Vec::from(SPARSE.map(|(name, _)| name));
    names.push(MAKER);
    names
}

/// Measures the rows that `asked` names, and prints the nanoseconds. A child process does this.
pub fn print(asked: &[String]) -> Result<(), String> {
    let (rounds, asked) = samples::parse(asked)?;
    let is_asked = |row: &str| asked.iter().any(|name| name == row);
    let Some(frequency) = counter::state().frequency else {
        return Ok(()); // the vDSO answers every read
    };
    let print = |row, contender, ticks: &[f64]| {
        let seconds = median(ticks) / frequency as f64;
        say(row, contender, seconds * 1e9);
    };
    for (row, pause) in SPARSE {
        if is_asked(row) {
            let pause = Duration::from_millis(pause);
            let count = (rounds / 16).max(3);
            let [ours, vdso, floor] = sparse(pause, count);
            print(row, OURS, &ours);
            print(row, VDSO, &vdso);
            print(row, RESTED, &floor);
        }
    }
    if is_asked(MAKER) {
        let makers = makers(rounds);
        print(MAKER, OURS, &makers.ours);
        print(MAKER, VDSO, &makers.vdso);
    }
    Ok(())
}

/// Returns the ticks that a call takes.
fn time(call: impl FnOnce()) -> f64 {
    let start = ticks_ordered();
    call();
    ticks_ordered().wrapping_sub(start) as f64
}

/// Returns the ticks that [`time`] itself takes.
fn overhead() -> f64 {
    let mut ticks = Vec::with_capacity(1000);
    for _ in 0..1000 {
        ticks.push(time(|| ()));
    }
    median(&ticks)
}

#[inline(always)]
fn read_ours() {
    keep(counter::CounterMonotonicUnordered::now().as_nanos());
}

#[inline(always)]
fn read_vdso() {
    vdso_time::clock_gettime(ClockId::MONOTONIC).keep();
}

#[inline(always)]
fn read_ordered() {
    keep(counter::CounterMonotonic::now().as_nanos());
}

/// Reads a number of nanoseconds, as [`read_ours`] does.
#[inline(always)]
fn read_vdso_nanos() {
    keep(vdso_time::Instant::now().as_nanos());
}

/// The ticks of calls that make a segment, and of reads of the vDSO that are as rare.
#[derive(Default)]
struct Makers {
    ours: Vec<f64>,
    vdso: Vec<f64>,
}

/// Reads back to back until so many calls made a segment. As many reads of the vDSO follow, each
/// about half a segment later. So both are equally rare, and find an equally cold cache.
fn makers(count: usize) -> Makers {
    let nothing = overhead();
    let half = counter::state().frequency.unwrap_or(0) / 1000 * 6;
    let mut makers = Makers::default();
    let mut made = ticks();
    while makers.ours.len() < count {
        let segments = counter::state().statistics.segments;
        let taken = time(read_ours);
        if counter::state().statistics.segments != segments {
            makers.ours.push(taken - nothing);
            made = ticks();
        }
        let is_late = ticks().wrapping_sub(made) > half;
        if is_late && makers.vdso.len() < makers.ours.len() {
            makers.vdso.push(time(read_vdso) - nothing);
        }
    }
    makers
}

/// Sleeps before each read: of this clock, of the vDSO and of the floor in turns.
fn sparse(pause: Duration, count: usize) -> [Vec<f64>; 3] {
    let reads = [read_ours, read_vdso, || keep(floor::rested())];
    let nothing = overhead();
    thread::sleep(Duration::from_millis(20)); // the last segment ends
    let mut ticks = [const { Vec::new() }; 3];
    for _ in 0..count {
        for (ticks, read) in ticks.iter_mut().zip(reads) {
            thread::sleep(pause);
            ticks.push(time(read) - nothing);
        }
    }
    ticks
}

/// Returns the rows [`WITHOUT_COUNTER`]. In this process no file can be opened any more.
///
/// # Panics
/// If the kernel rejects the limit.
pub fn without_counter() -> [Row; 2] {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call reads one `rlimit`.
    let status = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none) };
    assert_eq!(status, 0, "setrlimit");
    let vdso = || Contender::new(VDSO, read_vdso_nanos);
    let [unordered, ordered] = WITHOUT_COUNTER;
    [
        Row::new(unordered, [Contender::new(OURS, read_ours), vdso()]),
        Row::new(ordered, [Contender::new(OURS, read_ordered), vdso()]),
    ]
}
