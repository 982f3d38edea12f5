//! What a read costs, through the crate and by system call.

use std::hint::black_box;

use vdso_time::{Cpu, Errno, Instant, Timespec, Timeval, syscall};

use crate::call::Call;

type Answer = Result<i64, Errno>;

/// Nanoseconds for one read: the median of the rounds, in which both ways take turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    pub(crate) here: f64,
    /// None if a sandbox denies the system call.
    pub(crate) system_call: Option<f64>,
}

const ROUNDS: usize = 11;

/// Long enough that measurement the watch does not count.
const ROUND_NANOS: f64 = 100_000.0;

/// Ends the search for the length of a round if the watch does not advance.
const MOST_READS: u32 = 1 << 20;

/// Returns whether `CLOCK_MONOTONIC` can time a round. It cannot if a sandbox denies it, or if the
/// clock source is the timer's ticks. One look proves nothing if it was preempted, so it takes
/// five.
pub(crate) fn has_watch() -> bool {
    let step = || {
        let start = Instant::try_now().ok()?;
        let next = (0..MOST_READS)
            .map_while(|_| Instant::try_now().ok())
            .find(|now| *now != start)?;
        Some(next.duration_since(start).as_secs_f64() * 1e9)
    };
    (0..5)
        .filter_map(|_| step())
        .any(|step| step < ROUND_NANOS / 10.0)
}

/// Times a read. Returns nothing if it fails.
pub(crate) fn speed(read: Call) -> Option<Speed> {
    // Each read is a loop of its own without a branch on `read`, and each answer becomes one
    // number: copying the time that was just written would cost more than some reads.
    let sum = |time: Timespec| time.tv_sec.wrapping_add(time.tv_nsec);
    let micros = |time: Timeval| time.tv_sec.wrapping_add(time.tv_usec);
    let cpu = |here: Cpu| i64::from(here.cpu.wrapping_add(here.node));
    match read {
        Call::Time => compare(|| Ok(vdso_time::time()), syscall::try_time),
        Call::Gettimeofday => compare(
            || vdso_time::gettimeofday().map(micros),
            || syscall::gettimeofday().map(micros),
        ),
        Call::Getcpu => compare(
            || vdso_time::getcpu().map(cpu),
            || syscall::getcpu().map(cpu),
        ),
        Call::ClockGettime(clock) => compare(
            || vdso_time::clock_gettime(clock).map(sum),
            || syscall::clock_gettime(clock).map(sum),
        ),
        Call::ClockGetres(clock) => compare(
            || vdso_time::clock_getres(clock).map(sum),
            || syscall::clock_getres(clock).map(sum),
        ),
    }
}

fn compare(here: impl Fn() -> Answer, in_kernel: impl Fn() -> Answer) -> Option<Speed> {
    here().ok()?;
    let is_allowed = in_kernel().is_ok();
    let (many, few) = (reads_in_a_round(&here)?, reads_in_a_round(&in_kernel)?);
    let mut rounds = [[0.0; 2]; ROUNDS];
    for [of_here, of_kernel] in &mut rounds {
        *of_here = total(many, &here)? / f64::from(many);
        *of_kernel = total(few, &in_kernel)? / f64::from(few);
    }
    let median = |way: usize| {
        let mut costs = rounds.map(|round| round[way]);
        costs.sort_by(f64::total_cmp);
        costs[ROUNDS / 2]
    };
    Some(Speed {
        here: median(0),
        system_call: is_allowed.then(|| median(1)),
    })
}

fn reads_in_a_round(read: impl Fn() -> Answer) -> Option<u32> {
    let mut reads = 16;
    while reads < MOST_READS && total(reads, &read)? < ROUND_NANOS {
        reads *= 2;
    }
    Some(reads)
}

/// Returns the nanoseconds of so many reads. Another thread may deny the watch to all threads
/// meanwhile.
fn total(reads: u32, read: impl Fn() -> Answer) -> Option<f64> {
    let start = Instant::try_now().ok()?;
    for _ in 0..reads {
        black_box(read().unwrap_or_default());
    }
    Some(Instant::try_now().ok()?.duration_since(start).as_secs_f64() * 1e9)
}
