//! The test by which a user-space gettimeofday was published: the difference from the kernel's over many calls, and the seconds
//! that as many calls take.

#![allow(unsafe_code, reason = "getrusage(2) is called here")]

use std::hint::black_box;
use std::time::Instant;

use vdso_time::{ClockId, clock_gettime, counter, syscall};

/// Pairs of calls compared.
const PAIRS: u64 = 1_000_000;
/// Calls timed.
const CALLS: u64 = 10_000_000;

pub(crate) fn report() {
    let (mut sum, mut max, mut micro, mut ten) = (0, 0, 0_u64, 0_u64);
    for _ in 0..PAIRS {
        let kernel = clock_gettime(ClockId::REALTIME).expect("the clock can be read");
        let difference = counter::realtime() - (kernel.tv_sec * 1_000_000_000 + kernel.tv_nsec);
        let size = difference.unsigned_abs();
        sum += size;
        max = size.max(max);
        micro += u64::from(size > 1_000);
        ten += u64::from(size > 10_000);
    }
    println!(
        "max difference {:.3} us, average {:.3} us; off by more than 1 us: {micro}, by more than 10 us: {ten}, of {PAIRS}",
        max as f64 / 1e3,
        sum as f64 / PAIRS as f64 / 1e3
    );
    println!("{CALLS} calls       real    user     sys  seconds");
    let system_call = timed("gettimeofday(2)", || syscall::gettimeofday().map_or(0, |now| now.tv_usec));
    timed("vDSO", || vdso_time::gettimeofday().map_or(0, |now| now.tv_usec));
    let counter = timed("counter", counter::realtime);
    println!("calls per second, counter to system call: {:.1}", system_call / counter);
}

/// Prints what many calls take, and returns the seconds.
fn timed(name: &str, call: impl Fn() -> i64) -> f64 {
    let (start, before) = (Instant::now(), usage());
    for _ in 0..CALLS {
        black_box(call());
    }
    let (real, after) = (start.elapsed().as_secs_f64(), usage());
    let [user, system] = [0, 1].map(|which| after[which] - before[which]);
    println!("{name:<17} {real:>7.3} {user:>7.3} {system:>7.3}");
    real
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
