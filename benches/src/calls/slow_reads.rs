//! What a read of the counter clock costs where the current segment does not answer it.

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
use crate::harness::samples::{OURS, say};
use crate::harness::{Contender, Row, median};

/// The row of the calls that make a segment.
pub const MAKER: &str = "a call that makes a segment";
/// The rows of a reader that sleeps between two reads, and for how many milliseconds.
pub const SPARSE: [(&str, u64); 3] = [
    ("a read each 1 ms", 1),
    ("a read each 10 ms", 10),
    ("a read each 100 ms", 100),
];
/// The row of the clock in a process that cannot learn the kernel's clock source.
pub const REFUSED: &str = "CounterMonotonicUnordered::now(), without a counter";

/// The contender that the rows are compared with, through the vDSO.
pub const VDSO: &str = "clock_gettime";
/// The contender that decides by one cache line to ask the vDSO, and keeps the answer in it.
pub const RESTED: &str = "a line and the vDSO";

/// Returns the rows of [`print()`].
pub fn names() -> impl Iterator<Item = &'static str> {
    SPARSE.into_iter().map(|(name, _)| name).chain([MAKER])
}

/// Measures the rows that `asked` names, and prints the nanoseconds. A child process does this.
pub fn print(asked: &[String]) -> Result<(), String> {
    let (rounds, asked) = asked
        .split_first()
        .ok_or("the number of rounds is missing")?;
    let rounds: usize = rounds
        .parse()
        .map_err(|error| format!("{rounds}: {error}"))?;
    let is_asked = |row: &str| asked.iter().any(|name| name == row);
    let Some(frequency) = counter::state().frequency else {
        return Ok(()); // the vDSO answers every read
    };
    let print =
        |row, contender, ticks: &[f64]| say(row, contender, median(ticks) * 1e9 / frequency as f64);
    for (row, pause) in SPARSE.into_iter().filter(|(row, _)| is_asked(row)) {
        let [ours, vdso, floor] = sparse(Duration::from_millis(pause), (rounds / 16).max(3));
        print(row, OURS, &ours);
        print(row, VDSO, &vdso);
        print(row, RESTED, &floor);
    }
    if is_asked(MAKER) {
        let [ours, vdso] = makers(rounds);
        print(MAKER, OURS, &ours);
        print(MAKER, VDSO, &vdso);
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
    median(&(0..1000).map(|_| time(|| ())).collect::<Vec<_>>())
}

#[inline(always)]
fn read_ours() {
    keep(counter::CounterMonotonicUnordered::now().as_nanos());
}

#[inline(always)]
fn read_vdso() {
    vdso_time::clock_gettime(ClockId::MONOTONIC).keep();
}

/// Reads a number of nanoseconds, as [`read_ours`] does.
#[inline(always)]
fn read_vdso_nanos() {
    keep(vdso_time::Instant::now().as_nanos());
}

/// Reads back to back until so many calls made a segment. Returns their ticks, and those of as many
/// reads of the vDSO, each about half a segment later: so both are rare, and find as cold a cache.
fn makers(count: usize) -> [Vec<f64>; 2] {
    let (nothing, mut ours, mut vdso) = (overhead(), Vec::new(), Vec::new());
    let half = counter::state().frequency.unwrap_or(0) / 1000 * 6;
    let mut made = ticks();
    while ours.len() < count {
        let segments = counter::state().statistics.segments;
        let taken = time(read_ours);
        if counter::state().statistics.segments != segments {
            ours.push(taken - nothing);
            made = ticks();
        }
        if vdso.len() < ours.len() && ticks().wrapping_sub(made) > half {
            vdso.push(time(read_vdso) - nothing);
        }
    }
    [ours, vdso]
}

/// Sleeps before each read: of this clock, of the vDSO and of the floor in turns.
fn sparse(pause: Duration, count: usize) -> [Vec<f64>; 3] {
    let nothing = overhead();
    thread::sleep(Duration::from_millis(20)); // the last segment ends
    let mut ticks = [const { Vec::new() }; 3];
    for _ in 0..count {
        for (ticks, read) in ticks
            .iter_mut()
            .zip([read_ours, read_vdso, || keep(floor::rested())])
        {
            thread::sleep(pause);
            ticks.push(time(read) - nothing);
        }
    }
    ticks
}

/// Returns the row [`REFUSED`]. In this process no file can be opened any more.
///
/// # Panics
/// If the kernel refuses the limit.
pub fn refused() -> Row {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call reads one `rlimit`.
    let status = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none) };
    assert_eq!(status, 0, "setrlimit");
    Row::new(
        REFUSED,
        [
            Contender::new(OURS, read_ours),
            Contender::new(VDSO, read_vdso_nanos),
        ],
    )
}
