//! The cost of a read, through the crate and as a system call.

use std::hint::black_box;

use vdso_time::{ClockId, Cpu, Errno, Instant, Timespec, Timeval, syscall};

use crate::call::Call;

type Answer = Result<i64, Errno>;

/// The cost of one read in nanoseconds, through vdso-time and as a system call. Both costs are
/// medians of several rounds. Each round times both, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    pub(crate) here: f64,
    /// None if a sandbox denies the system call.
    pub(crate) system_call: Option<f64>,
}

const ROUNDS: usize = 11;

/// The duration of a round. It is so long that the two reads of `CLOCK_MONOTONIC` which time the
/// round cost nothing in comparison.
const ROUND_NANOS: f64 = 100_000.0;

/// The maximum number of reads in a round. This limit ends the search for the number of reads that
/// fill a round even if `CLOCK_MONOTONIC` does not advance.
const MOST_READS: u32 = 1 << 20;

/// Returns whether `CLOCK_MONOTONIC` can time a round. It cannot if a sandbox denies the clock. Nor
/// can it if the clock source is the timer's ticks, because a step of the clock must be shorter
/// than a tenth of a round. If the thread is preempted while it waits for a step, the step seems
/// longer than it is, so the function tries up to five times.
pub(crate) fn has_watch() -> bool {
    (0..5).any(|_| first_step().is_some_and(|step| step < ROUND_NANOS / 10.0))
}

/// Returns the size of the next step of `CLOCK_MONOTONIC`.
fn first_step() -> Option<f64> {
    let start = Instant::try_now().ok()?;
    for _ in 0..MOST_READS {
        let now = Instant::try_now().ok()?;
        if now != start {
            return Some(now.duration_since(start).as_secs_f64() * 1e9);
        }
    }
    None
}

/// Returns the smallest step that a clock was seen to make, in nanoseconds.
///
/// The search ends after about 100 steps, which a precise clock makes within microseconds. A clock
/// that advances with the timer's ticks, which come every 1 to 10 ms, would need too long for 100
/// steps. For such a clock the search ends once it has taken 12 ms and has seen three steps, or
/// after 50 ms. One step would not be enough: if the thread was preempted before it saw the step,
/// the step comprises many ticks.
pub(crate) fn step(clock: ClockId) -> Option<i64> {
    const FEW_STEPS: u32 = 3;
    const MANY_STEPS: u32 = 100;
    const SHORT_SEARCH: f64 = 12e6;
    const LONG_SEARCH: f64 = 50e6;
    let start = Instant::try_now().ok()?;
    let mut last = nanos(clock)?;
    let mut smallest = None;
    let mut steps = 0;
    while steps < MANY_STEPS {
        for _ in 0..100 {
            let now = nanos(clock)?;
            let step = now - last;
            last = now;
            // The wall clock can be set back.
            if step > 0 {
                steps += 1;
                smallest = Some(smallest.map_or(step, |smallest: i64| smallest.min(step)));
            }
        }
        let search = nanos_since(start)?;
        let is_seen = steps >= FEW_STEPS && search > SHORT_SEARCH;
        if is_seen || search > LONG_SEARCH {
            break;
        }
    }
    smallest
}

fn nanos(clock: ClockId) -> Option<i64> {
    Some(vdso_time::clock_gettime(clock).ok()?.as_nanos() as i64)
}

/// Returns the nanoseconds since an instant, or `None` if another thread has denied the clock to
/// all threads meanwhile.
fn nanos_since(start: Instant) -> Option<f64> {
    let now = Instant::try_now().ok()?;
    Some(now.duration_since(start).as_secs_f64() * 1e9)
}

/// Times a read. Returns `None` if it fails.
pub(crate) fn speed(read: Call) -> Option<Speed> {
    // Each kind of read has a loop of its own, so that the loop has no branch on `read`. The two
    // fields of each answer are added to one number, because copying the struct that the read has
    // just written would cost more than some reads.
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
    let many = reads_in_a_round(&here)?;
    let few = reads_in_a_round(&in_kernel)?;
    let mut costs_here = [0.0; ROUNDS];
    let mut costs_in_kernel = [0.0; ROUNDS];
    for round in 0..ROUNDS {
        costs_here[round] = total(many, &here)? / f64::from(many);
        costs_in_kernel[round] = total(few, &in_kernel)? / f64::from(few);
    }
    let system_call = if is_allowed {
        Some(median(costs_in_kernel))
    } else {
        None
    };
    Some(Speed {
        here: median(costs_here),
        system_call,
    })
}

fn median(mut costs: [f64; ROUNDS]) -> f64 {
    costs.sort_by(f64::total_cmp);
    costs[ROUNDS / 2]
}

fn reads_in_a_round(read: impl Fn() -> Answer) -> Option<u32> {
    let mut reads = 16;
    while reads < MOST_READS && total(reads, &read)? < ROUND_NANOS {
        reads *= 2;
    }
    Some(reads)
}

/// Returns how many nanoseconds it takes to make `reads` reads.
fn total(reads: u32, read: impl Fn() -> Answer) -> Option<f64> {
    let start = Instant::try_now().ok()?;
    for _ in 0..reads {
        black_box(read().unwrap_or_default());
    }
    nanos_since(start)
}
