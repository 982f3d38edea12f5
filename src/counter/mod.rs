//! A clock that reads the CPU's own counter (feature `counter`): the TSC on x86, `CNTVCT` on arm. A
//! read costs what reading the counter costs. The clock follows the kernel's clock.
//!
//! # How it works
//!
//! - The first reads measure the counter's rate. Nothing runs before `main`, and nothing spins. The
//!   vDSO answers meanwhile.
//! - Then a line says for each tick what time it is. A line has the ticks of 8 to 16 ms.
//! - Shortly before a line ends, one caller reads both clocks side by side, which takes the time of
//!   four reads, and makes the next line. That begins where the old line ends, and is bent towards
//!   the kernel's clock. So the time does not step, and it does not go back.
//! - A line is not followed beyond its end. If no caller made the next line in time, the vDSO
//!   answers the next read, and a new line begins there.
//!
//! Readers take no lock, never wait, and write nothing. Any number of threads can read at once. A
//! signal handler can read at any time, even if it interrupts the caller that makes a line. A
//! program that reads once in a while pays for one read of the vDSO and four more.
//!
//! # When the counter is used
//!
//! The counter is used only where the kernel itself keeps its time by it: `current_clocksource` is
//! `tsc` or `arch_sys_counter`. Such a kernel checks that the counters of the CPUs agree, and marks
//! the TSC unstable if they do not. It is asked again when counter and clock go apart, and when
//! reading the clock takes three times as long as before. In all other cases the vDSO answers.
//! [`check`] asks the kernel at once; [`status`] says what is the case now.
//!
//! On x86 each line knows the CPU on which it was made. If counter and clock go apart three times,
//! each time on another CPU than before, the counter is given up. On arm and aarch64 all CPUs share
//! one system counter (Arm Architecture Reference Manual, D12.1).
//!
//! # Accuracy
//!
//! [`error_bound`] says how far a read may be from the kernel's clock. It is the sum of
//!
//! - 30 ns, or three ticks if these are more;
//! - the error that the line takes away, 16 us at most;
//! - what a change of the kernel's rate by NTP, 500 ppm, makes in one line, 8 us at most;
//! - the time by which the clock is ahead because it does not go back. That is 0 unless the counter
//!   was measured anew a moment ago.
//!
//! [`state`] returns the bound together with the status that it belongs to.
//!
//! The bound does not hold at once after one of these events:
//!
//! - the kernel's rate changes by more than 500 ppm;
//! - the system is suspended, or its virtual machine is moved or restored;
//! - the process comes into another time namespace (time_namespaces(7));
//! - for [`realtime`], somebody sets `CLOCK_REALTIME`.
//!
//! The clock sees the event when the line ends, after 17 ms of the counter as it was. Until then
//! the time is the line's, so it may be off by any amount. Then the clocks are compared. An error
//! of more than 977 ppm of a line is not corrected: the counter is measured anew, the vDSO answers,
//! and the bound holds again. An event while the counter is measured can make the first line wrong
//! in the same way.
//!
//! # Order
//!
//! [`monotonic`] lets the CPU read the counter early. Within a thread it does not go back, but a
//! time that another thread handed over may be later than the next one read. [`monotonic_ordered`]
//! and [`Counter`] wait for everything before them (`lfence`, `isb`): a time is never earlier than
//! one that was read before, on whatever CPU.
//!
//! The time can go back in two cases:
//!
//! - **The process comes into another time namespace** whose `CLOCK_MONOTONIC` is behind, by
//!   setns(2) or as the child of a process that called unshare(2). The kernel's clock goes back
//!   then, and this clock follows when the line ends: at once if its last answer is ahead by more
//!   than 64 ms. If it is ahead by less, the time stands still until the kernel's clock has caught
//!   up, and [`error_bound`] includes the difference.
//! - **The counter is set back** by less than a line has ticks. No kernel does that, except when it
//!   restores a virtual machine.
//!
//! # Where the clock must not be used
//!
//! A thread that may not read the counter (`PR_SET_TSC`, strict seccomp) gets SIGSEGV, as it does
//! in a vDSO that reads the counter.
//!
//! Some reads ask the kernel by `prctl`, `openat`, `read` and `close`: the first one, and later
//! those that make a line and find the clocks suspect, which two interrupts are enough for. Do not
//! use this clock in a sandbox that kills for one of these calls. If a sandbox answers with an
//! error, or there is no /sys, the vDSO answers, and the kernel is asked again after a second
//! ([`Status::Unknown`]).
//!
//! If a process forks while another thread makes a line, the child cannot make lines: the vDSO
//! answers there when the line has ended ([`Status::Claimed`]).
//!
//! # Replaced clocks
//!
//! Libraries that replace clock functions of the C library by `LD_PRELOAD`, such as libfaketime,
//! have no effect on this clock. On x86, x86_64, aarch64 and arm it calls the vDSO and the kernel
//! directly. On other architectures it has no counter, and the C library answers.

mod engine;
mod floor;
mod latch;
mod line;
mod machine;
mod queries;
mod record;
mod renewal;
mod sample;
mod status;
mod trust;

use crate::errno::Errno;
use crate::instant::{Clock, Instant};
use crate::linux::calls::clock_gettime;
use crate::linux::native;
use crate::types::{ClockId, Timespec};
use engine::Engine;
use machine::Native;
pub use queries::{check, error_bound, frequency, state, status};
use sample::Source;
pub use status::{State, Status};

static CLOCK: Engine<Native> = Engine::new(Native);

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds, by the counter.
///
/// It does not go back within a thread, unless the process comes into another time namespace: see
/// [Order](self#order).
///
/// # Panics
/// If the vDSO is asked, and a sandbox denies every way to read the clock.
///
/// ```
/// use vdso_time::counter;
///
/// let start = counter::monotonic();
/// println!("{} ns", counter::monotonic() - start);
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn monotonic() -> u64 {
    match CLOCK.monotonic(Native::ticks) {
        Some(nanos) => nanos,
        None => slow_monotonic(),
    }
}

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds, by the counter, which is read only after
/// everything before it is done.
///
/// It is not earlier than a time that any thread read before, unless the process comes into another
/// time namespace: see [Order](self#order).
///
/// # Panics
/// As [`monotonic`].
///
/// ```
/// use std::thread;
/// use vdso_time::counter;
///
/// let here = counter::monotonic_ordered();
/// let there = thread::spawn(counter::monotonic_ordered).join().unwrap();
/// assert!(here <= there);
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn monotonic_ordered() -> u64 {
    match CLOCK.monotonic(Native::ticks_ordered) {
        Some(nanos) => nanos,
        None => slow_monotonic(),
    }
}

/// Returns the time of `CLOCK_REALTIME` in nanoseconds since the Epoch, by the counter.
///
/// If somebody sets the clock, this is seen when the next line is made.
///
/// # Panics
/// As [`monotonic`].
///
/// ```
/// assert!(vdso_time::counter::realtime() > 1_700_000_000_000_000_000);
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn realtime() -> i64 {
    match CLOCK.realtime(Native::ticks) {
        Some(nanos) => nanos,
        None => slow_realtime(),
    }
}

/// Returns the counter itself.
///
/// On arm the counter can be read only if the kernel's vDSO reads it. There, and where there is no
/// counter, this returns the nanoseconds of [`monotonic`].
///
/// ```
/// use vdso_time::counter;
///
/// let start = counter::ticks();
/// println!("{} ticks", counter::ticks() - start);
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn ticks() -> u64 {
    if native::counter::IS_READABLE { native::counter::ticks() } else { monotonic() }
}

/// Returns the [`ticks`], which are read only after everything before them is done.
///
/// ```
/// use vdso_time::counter;
///
/// assert!(counter::ticks_ordered() <= counter::ticks_ordered());
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn ticks_ordered() -> u64 {
    if native::counter::IS_READABLE { native::counter::ticks_ordered() } else { monotonic_ordered() }
}

/// The clock of [`monotonic_ordered`], as a type.
///
/// ```
/// use vdso_time::{Clock, Counter};
///
/// let start = Counter::now();
/// println!("{:?}", start.elapsed());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {}

impl Clock for Counter {
    #[inline]
    fn try_now() -> Result<Instant<Self>, Errno> {
        match CLOCK.monotonic(Native::ticks_ordered) {
            Some(nanos) => Ok(Instant::from_nanos(nanos as i64)),
            None => try_slow_monotonic().map(|nanos| Instant::from_nanos(nanos as i64)),
        }
    }
}

// Where a sandbox denies the clock, asking once more tells what it answers.

#[cold]
#[inline(never)]
fn try_slow_monotonic() -> Result<u64, Errno> {
    CLOCK
        .slow_monotonic()
        .map_or_else(|| clock_gettime(ClockId::MONOTONIC).map(|time| time.ktime() as u64), Ok)
}

#[cold]
#[inline(never)]
#[track_caller]
fn slow_monotonic() -> u64 {
    try_slow_monotonic().unwrap_or_else(|error| denied(error))
}

#[cold]
#[inline(never)]
#[track_caller]
fn slow_realtime() -> i64 {
    let again = || clock_gettime(ClockId::REALTIME).map(Timespec::ktime);
    CLOCK.slow_realtime().map_or_else(again, Ok).unwrap_or_else(|error| denied(error))
}

#[track_caller]
fn denied<T>(error: Errno) -> T {
    panic!("the clock cannot be read: {error}")
}
