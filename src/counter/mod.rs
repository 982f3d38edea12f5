//! A clock read from the CPU's own counter (feature `counter`): the TSC on x86, `CNTVCT` on arm. It costs what reading the
//! counter costs, and is kept true to the kernel's clock.
//!
//! # How
//!
//! The first reads measure the counter's rate; nothing runs before `main`, nothing spins, and the vDSO answers meanwhile.
//! Then a line says for each tick what time it is. A line ends after 8 to 16 ms. Shortly before, whichever caller comes by
//! reads both clocks side by side, in the time of four reads, and makes the next line, which begins where the old one ends and
//! is bent towards the kernel's clock: the time never steps, and never goes back. A line that nobody renewed in time is not
//! followed beyond its end: the vDSO answers the next read, and a new line begins there.
//!
//! Readers take no lock, never wait, and write nothing, so any number of threads read at once at the price of one; a signal
//! handler may read at any time, even where it interrupted the maker of a line. A program that reads once in a while pays what
//! the vDSO costs, and four reads more.
//!
//! # When
//!
//! Only where the kernel itself keeps its time by this counter: `current_clocksource` is `tsc` or `arch_sys_counter`. There, CPUs
//! whose counters differ are the kernel's to find (it marks the TSC unstable), and it is asked again whenever counter and clock
//! go apart, or reading the clock becomes three times as dear. In every other case the vDSO answers, as ever; [`status`] says why.
//!
//! Where it can be told without a system call (x86), each line knows the CPU on which it was made; if counter and clock go
//! apart three times over on another CPU than before, the counter is given up. On arm and aarch64 there is one system counter
//! for all CPUs (Arm Architecture Reference Manual, D12.1), and nothing is left to compare.
//!
//! # How true
//!
//! [`error_bound`] says how far a read may be off: 30 ns (or three ticks), the error that the line takes away, and what a change of
//! the kernel's rate by NTP (500 ppm) makes in one line, 8 us at most. It assumes that since the last line was made the clock was
//! not stepped and the virtual machine not restored; after such a thing a line is wrong until its end, 16 ms of the counter as it
//! was, and then the clocks are compared. A correction of more than 977 ppm is no correction: the counter is measured anew, and until
//! the kernel's clock has come to what the last line said in the end, a quarter of a millisecond at most, the time stands still. A
//! counter that is itself set back, less far than a line is long, takes the time back with it: no kernel does that but for a virtual
//! machine that it restores.
//!
//! # Order
//!
//! [`monotonic`] lets the CPU read the counter early, as it likes: within a thread it never goes back, but a time that another
//! thread handed over may be later than the one read next. [`monotonic_ordered`], and [`Counter`], wait for what comes before
//! (`lfence`, `isb`): a time is never earlier than one that happened before, on whatever CPU.
//!
//! # Where it must not be used
//!
//! A thread that may not read the counter (`PR_SET_TSC`, strict seccomp) gets SIGSEGV here, as in a vDSO that reads it.
//!
//! The kernel is asked by `prctl`, `openat`, `read` and `close`: at the first read, and later by whichever read makes a line and finds
//! the clocks suspect, which two interrupts can make them. So this clock is not for a sandbox that kills a thread for one of
//! these. One that answers with an error, or a root without /sys, ends the counter's use at most until a second later, when it is asked
//! again ([`Status::Unknown`]).
//!
//! A process that was forked while another thread made a line lost the right to make one: the vDSO answers there from the end of the
//! line on, see [`Status::Claimed`]. A process that changes its time namespace has the old one's time until the line's end; where the
//! new one's clock is behind by less than 5 s, the time stands still until that has caught up.

mod engine;
mod floor;
mod latch;
mod line;
mod record;
mod renewal;
mod sample;
mod status;
mod trust;

use crate::error::Errno;
use crate::instant::{Clock, Instant};
use crate::linux::calls::{clock_gettime, getcpu};
use crate::linux::native;
use crate::linux::routes;
use crate::types::{ClockId, Timespec};
use engine::Engine;
use sample::Source;
pub use status::Status;

static CLOCK: Engine<Native> = Engine::new(Native);

/// The time of `CLOCK_MONOTONIC` in nanoseconds, by the counter. It never goes back within a thread.
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

/// The time of `CLOCK_MONOTONIC` in nanoseconds, by the counter, not before anything that happened before.
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

/// The time of `CLOCK_REALTIME` in nanoseconds since the Epoch, by the counter. A step of the clock is seen when the next line
/// is made.
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

/// The counter itself; but on arm, where it can be read only if the kernel's vDSO reads it, and where there is none, the
/// nanoseconds of [`monotonic`].
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

/// [`ticks`], not before anything that happened before.
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

/// How many [`ticks`] a second has: measured, so none before that is done, nor where the counter is not used.
///
/// ```
/// use vdso_time::counter;
///
/// if let Some(hertz) = counter::frequency() {
///     println!("a tick is {} ps", 1_000_000_000_000 / hertz);
/// }
/// ```
#[must_use]
pub fn frequency() -> Option<u64> {
    if native::counter::IS_READABLE { CLOCK.frequency() } else { Some(1_000_000_000) }
}

/// How far [`monotonic`] may be from `CLOCK_MONOTONIC`, in nanoseconds, if since the last line was made the clock was not stepped,
/// the virtual machine not restored, and the kernel's rate not changed by more than 500 ppm; 0 while the vDSO answers, whose time is
/// the kernel's (but for a moment after a line, whose last time it does not fall behind).
///
/// ```
/// assert!(vdso_time::counter::error_bound() < 100_000);
/// ```
#[must_use]
pub fn error_bound() -> u64 {
    CLOCK.error_bound()
}

/// Whether the counter is used, or why not.
///
/// ```
/// println!("{}", vdso_time::counter::status());
/// ```
#[must_use]
pub fn status() -> Status {
    CLOCK.status()
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

/// This machine.
struct Native;

impl Source for Native {
    #[inline]
    fn ticks(&self) -> u64 {
        native::counter::ticks()
    }

    #[inline]
    fn ticks_ordered(&self) -> u64 {
        native::counter::ticks_ordered()
    }

    fn monotonic(&self) -> Option<u64> {
        Some(clock_gettime(ClockId::MONOTONIC).ok()?.ktime() as u64)
    }

    fn realtime(&self) -> Option<i64> {
        Some(clock_gettime(ClockId::REALTIME).ok()?.ktime())
    }

    fn cpu(&self) -> Option<u32> {
        // `trust` made the first call; without the vDSO it would be a system call.
        if routes::are_symbols().1 { Some(getcpu().ok()?.cpu) } else { None }
    }

    fn trust(&self) -> Result<(), Status> {
        let _ = getcpu();
        trust::check()
    }

    fn stated_frequency(&self) -> Option<u64> {
        native::counter::stated_frequency()
    }
}
