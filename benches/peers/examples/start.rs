//! Reads a clock once: the contender's of the cfg with which it is built. With an argument it prints
//! the nanoseconds of that read, and its page faults; with `again`, after std has read the time.

use std::hint::black_box;
use std::mem::MaybeUninit;

#[allow(dead_code, reason = "some contenders read in another way")]
fn keep<T>(answer: T) {
    black_box(answer);
}

#[inline(never)]
fn read() {
    #[cfg(contender = "clocksource")]
    keep(clocksource::precise::Instant::now());
    #[cfg(contender = "coarsetime")]
    keep(coarsetime::Instant::now());
    #[cfg(contender = "counter")]
    keep(vdso_time::counter::monotonic());
    #[cfg(contender = "fastant")]
    keep(fastant::Instant::now());
    #[cfg(contender = "libc")]
    keep(clock(|clock, out| {
        // SAFETY: `out` has room for a time.
        unsafe { libc::clock_gettime(clock, out) }.into()
    }));
    #[cfg(contender = "minstant")]
    keep(minstant::Instant::now());
    #[cfg(contender = "quanta")]
    keep(quanta::Instant::now());
    #[cfg(contender = "rustix")]
    keep(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic));
    #[cfg(contender = "std")]
    keep(std::time::Instant::now());
    #[cfg(contender = "vdso-time")]
    keep(vdso_time::Instant::now());
}

fn clock(read: impl Fn(libc::clockid_t, *mut libc::timespec) -> libc::c_long) -> i64 {
    let mut out = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    read(libc::CLOCK_MONOTONIC, &raw mut out);
    out.tv_sec * 1_000_000_000 + out.tv_nsec
}

/// The kernel's time, by a system call, which does not touch the vDSO's pages.
fn nanos() -> i64 {
    clock(|clock, out| {
        // SAFETY: clock_gettime(2) writes a time to `out`, which has room for it.
        unsafe { libc::syscall(libc::SYS_clock_gettime, clock, out) }
    })
}

fn faults() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for the usage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: the numbers are written, or zero.
    unsafe { usage.assume_init() }.ru_minflt
}

fn main() {
    let Some(argument) = std::env::args_os().nth(1) else { return read() };
    if argument == "again" {
        black_box(std::time::Instant::now());
    }
    let nothing = (0..15).map(|_| -nanos() + nanos()).min().unwrap_or(0);
    let (before, start) = (faults(), nanos());
    read();
    let taken = nanos() - start - nothing;
    println!("{taken}\t{}", faults() - before);
}
