//! What a read costs.

use std::array;
use std::hint::black_box;

use vdso_time::{Instant, syscall};

use super::read::Read;

/// Nanoseconds for one read: the median of some rounds, in which both ways take turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed {
    pub(crate) here: f64,
    pub(crate) system_call: f64,
}

impl Speed {
    /// How much of a system call it costs.
    pub(crate) fn ratio(self) -> f64 {
        self.here / self.system_call
    }
}

const ROUNDS: usize = 11;

/// Long enough that starting and stopping the watch does not count.
const ROUND_NANOS: f64 = 100_000.0;

/// Where the watch stands still, this ends the search for how many that takes.
const MOST_READS: u32 = 1 << 20;

/// Times a read through the crate and by system call; nothing if the clock is not to be read.
pub(crate) fn speed(read: Read) -> Option<Speed> {
    read.in_kernel().ok()?;
    // Each read is a loop of its own, in which nothing chooses.
    Some(match read {
        Read::Time => compare(vdso_time::time, syscall::time),
        Read::Gettimeofday => compare(vdso_time::gettimeofday, syscall::gettimeofday),
        Read::Getcpu => compare(vdso_time::getcpu, syscall::getcpu),
        Read::ClockGettime(clock) => {
            compare(|| vdso_time::clock_gettime(clock), || syscall::clock_gettime(clock))
        }
        Read::ClockGetres(clock) => {
            compare(|| vdso_time::clock_getres(clock), || syscall::clock_getres(clock))
        }
    })
}

fn compare<T, U>(here: impl Fn() -> T, in_kernel: impl Fn() -> U) -> Speed {
    let (many, few) = (reads_in_a_round(&here), reads_in_a_round(&in_kernel));
    let rounds: [_; ROUNDS] =
        array::from_fn(|_| (total(many, &here) / f64::from(many), total(few, &in_kernel) / f64::from(few)));
    Speed {
        here: median(rounds.map(|(here, _)| here)),
        system_call: median(rounds.map(|(_, in_kernel)| in_kernel)),
    }
}

fn reads_in_a_round<T>(read: impl Fn() -> T) -> u32 {
    let mut reads = 16;
    while reads < MOST_READS && total(reads, &read) < ROUND_NANOS {
        reads *= 2;
    }
    reads
}

/// Nanoseconds for so many reads.
fn total<T>(reads: u32, read: impl Fn() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..reads {
        let value = read();
        // By reference: to copy a time that was just written would cost more than some of the reads.
        black_box(&value);
    }
    start.elapsed().as_secs_f64() * 1e9
}

fn median(mut values: [f64; ROUNDS]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[ROUNDS / 2]
}
