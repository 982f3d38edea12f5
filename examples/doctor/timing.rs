//! What a read costs.

use std::array;
use std::hint::black_box;

use vdso_time::arch::NATIVE;
use vdso_time::{ClockId, Cpu, Errno, Instant, Timespec, Timeval, syscall};

use super::read::Read;

type Answer = Result<i64, Errno>;

/// Nanoseconds for one read: the median of some rounds, in which both ways take turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed {
    pub(crate) here: f64,
    /// None where a sandbox denies the system call, or there is none.
    pub(crate) system_call: Option<f64>,
}

impl Speed {
    /// How much of a system call it costs.
    pub(crate) fn ratio(self) -> Option<f64> {
        Some(self.here / self.system_call?)
    }
}

const ROUNDS: usize = 11;

/// Long enough that starting and stopping the watch does not count.
const ROUND_NANOS: f64 = 100_000.0;

/// Where the watch stands still, this ends the search for how many that takes.
const MOST_READS: u32 = 1 << 20;

/// Whether there is a watch here that tells a round's time: not where the clock source is the timer's ticks.
pub(crate) fn has_watch() -> bool {
    let start = Instant::now();
    let mut now = start;
    for _ in 0..MOST_READS {
        now = Instant::now();
        if now != start {
            break;
        }
    }
    now.duration_since(start).as_secs_f64() * 1e9 < ROUND_NANOS / 10.0
}

/// Times a read through the crate and by system call; nothing if it is not answered.
pub(crate) fn speed(read: Read) -> Option<Speed> {
    // Each read is a loop of its own, in which nothing chooses, and each answer becomes one number: to copy a time that was
    // just written would cost more than some of the reads.
    let sum = |time: Timespec| time.tv_sec.wrapping_add(time.tv_nsec);
    let micros = |time: Timeval| time.tv_sec.wrapping_add(time.tv_usec);
    let cpu = |here: Cpu| i64::from(here.cpu.wrapping_add(here.node));
    match read {
        Read::Time => compare(|| Ok(vdso_time::time()), syscall::time),
        Read::Gettimeofday => {
            compare(|| vdso_time::gettimeofday().map(micros), || syscall::gettimeofday().map(micros))
        }
        Read::Getcpu => compare(|| vdso_time::getcpu().map(cpu), || syscall::getcpu().map(cpu)),
        Read::ClockGettime(clock) => {
            compare(|| vdso_time::clock_gettime(clock).map(sum), || syscall::clock_gettime(clock).map(sum))
        }
        Read::ClockGetres(clock) => {
            compare(|| vdso_time::clock_getres(clock).map(sum), || syscall::clock_getres(clock).map(sum))
        }
    }
}

/// The least that entering the kernel costs here: by system call, or by the vDSO, which has no CPU
/// times.
pub(crate) fn kernel_entry() -> Option<f64> {
    let clock = ClockId::THREAD_CPUTIME;
    let speeds = [speed(Read::ClockGettime(clock)), speed(Read::ClockGetres(clock))];
    speeds
        .into_iter()
        .flatten()
        .flat_map(|speed| [Some(speed.here), speed.system_call])
        .flatten()
        .reduce(f64::min)
}

fn compare(here: impl Fn() -> Answer, in_kernel: impl Fn() -> Answer) -> Option<Speed> {
    here().ok()?;
    // Without a table of the architecture's, the one is as much libc's as the other.
    let is_told = NATIVE.is_some() && in_kernel().is_ok();
    let (many, few) = (reads_in_a_round(&here), reads_in_a_round(&in_kernel));
    let rounds: [_; ROUNDS] =
        array::from_fn(|_| (total(many, &here) / f64::from(many), total(few, &in_kernel) / f64::from(few)));
    Some(Speed {
        here: median(rounds.map(|(here, _)| here)),
        system_call: is_told.then(|| median(rounds.map(|(_, in_kernel)| in_kernel))),
    })
}

fn reads_in_a_round(read: impl Fn() -> Answer) -> u32 {
    let mut reads = 16;
    while reads < MOST_READS && total(reads, &read) < ROUND_NANOS {
        reads *= 2;
    }
    reads
}

/// Nanoseconds for so many reads.
fn total(reads: u32, read: impl Fn() -> Answer) -> f64 {
    let start = Instant::now();
    for _ in 0..reads {
        black_box(read().unwrap_or_default());
    }
    start.elapsed().as_secs_f64() * 1e9
}

fn median(mut values: [f64; ROUNDS]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[ROUNDS / 2]
}
