//! The test by which a user-space gettimeofday was published: the difference from the kernel's over many calls, and the seconds
//! that as many calls take.

#![allow(unsafe_code, reason = "getrusage(2) is called here")]

use std::fmt;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use vdso_time::{ClockId, clock_gettime, counter, syscall};

/// Pairs of calls compared.
const PAIRS: u64 = 1_000_000;
/// Calls timed.
const CALLS: u64 = 10_000_000;

/// The differences of the pairs, in nanoseconds.
#[derive(Default)]
pub(crate) struct Differences {
    pub(crate) pairs: u64,
    pub(crate) sum: u64,
    pub(crate) max: u64,
    /// More than 1 us, and more than 10 us.
    pub(crate) micro: u64,
    pub(crate) ten: u64,
}

impl Differences {
    fn measure() -> Self {
        let mut seen = Self::default();
        for _ in 0..PAIRS {
            let kernel = clock_gettime(ClockId::REALTIME).expect("the clock can be read");
            let difference = counter::realtime() - (kernel.tv_sec * 1_000_000_000 + kernel.tv_nsec);
            let size = difference.unsigned_abs();
            seen.pairs += 1;
            seen.sum += size;
            seen.max = size.max(seen.max);
            seen.micro += u64::from(size > 1_000);
            seen.ten += u64::from(size > 10_000);
        }
        seen
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pairs, micro, ten, .. } = self;
        let [max, average] = [self.max as f64, self.sum as f64 / *pairs as f64].map(|nanos| nanos / 1e3);
        writeln!(
            f,
            "difference of {pairs} pairs of reads, one of each clock; a pair that was interrupted counts, and differs by the interruption"
        )?;
        write!(
            f,
            "max {max:.3} us, average {average:.3} us; off by more than 1 us: {micro}, by more than 10 us: {ten}"
        )
    }
}

pub(crate) fn report(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}\n", Differences::measure())?;
    writeln!(out, "{CALLS} calls       real    user     sys  seconds")?;
    let system_call = timed("gettimeofday(2)", out, || syscall::gettimeofday().map_or(0, |now| now.tv_usec))?;
    timed("vDSO", out, || vdso_time::gettimeofday().map_or(0, |now| now.tv_usec))?;
    let counter = timed("counter", out, counter::realtime)?;
    writeln!(out, "calls per second, counter to system call: {:.1}", system_call / counter)
}

/// Prints what many calls take, and returns the seconds.
fn timed(name: &str, out: &mut impl Write, call: impl Fn() -> i64) -> io::Result<f64> {
    let (start, before) = (Instant::now(), usage());
    for _ in 0..CALLS {
        black_box(call());
    }
    let (real, after) = (start.elapsed().as_secs_f64(), usage());
    let [user, system] = [0, 1].map(|which| after[which] - before[which]);
    writeln!(out, "{name:<17} {real:>7.3} {user:>7.3} {system:>7.3}")?;
    Ok(real)
}

/// Seconds of this process in user space and in the kernel.
fn usage() -> [f64; 2] {
    // SAFETY: numbers, which may be all zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: getrusage(2) writes there.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    assert_eq!(result, 0, "getrusage");
    [usage.ru_utime, usage.ru_stime].map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6)
}
