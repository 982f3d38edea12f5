//! A clock that reads the CPU's own counter and follows the kernel's clock.
//!
//! ```
//! use vdso_time_counter::{self as counter, Status};
//!
//! let start = counter::monotonic(); // nanoseconds of CLOCK_MONOTONIC
//! let state = counter::state();
//! match state.status {
//!     Status::Used => println!("by the counter, within {} ns of the kernel", state.error_bound),
//!     // The first 11 ms of reads, and programs that read less often than once in 1 ms: the vDSO
//!     // answers. The time is as accurate, and costs what the vDSO costs.
//!     Status::Calibrating | Status::Stale => println!("by the vDSO for now: {}", state.status),
//!     why => println!("by the vDSO: {why}"), // this machine or sandbox has no usable counter
//! }
//! println!("{} ns passed", counter::monotonic() - start);
//! ```
//!
//! # What it promises
//!
//! - **Cost**: a read costs little more than reading the counter. A fast read takes no lock, never
//!   waits and writes nothing. Nothing allocates, runs before `main`, or starts a thread (only
//!   `Refresher` does).
//! - **Error**: [`error_bound`] says how far a read may be from the kernel's clock: see
//!   [Accuracy](#accuracy). [`realtime_bounded`] gives limits of the true time.
//! - **Order**: the monotonic time does not go back: see [Order](#order).
//! - **Fallback**: where the counter cannot be trusted, the vDSO answers, and [`status`] says why.
//! - **Signals**: a signal handler can read at any time, also if it interrupts a read.
//!
//! # Order
//!
//! [`monotonic`] lets the CPU read the counter early. It does not go back within a thread, but a
//! time from another thread may be later than the next read. [`monotonic_ordered`] and [`Counter`]
//! wait for all earlier instructions, so no time is earlier than one that any thread read before.
//!
//! The time can go back in two cases:
//!
//! - **The process enters another time namespace** whose `CLOCK_MONOTONIC` is behind by more than
//!   64 ms. If it is behind by less, the time stands still, or goes slower, until the kernel's
//!   clock has caught up. [`error_bound`] includes the difference.
//! - **The counter is set back** by less than a segment. Kernels do that only when they restore a
//!   virtual machine.
//!
//! # Accuracy
//!
//! [`error_bound`] reads both clocks. It is the sum of
//!
//! - the distance between the two;
//! - 30 ns, or three ticks if they are longer;
//! - how far the segment and the kernel's clock can drift apart until the segment ends: by the
//!   rates of both, and by 500 ppm for NTP;
//! - the lead that the clock keeps because it does not go back, usually 0.
//!
//! The bound holds until the segment ends, unless one of these events comes after the call:
//!
//! - The kernel's rate changes by more than 500 ppm, or did so in this segment: adjtimex(2) slews
//!   by up to 10 % (`tick`), by 20 % with a PLL of constant 0 beside it, and chrony by 8.3 %. The
//!   next segment follows. A change by 10 % causes an error of up to 1.6 ms, and of up to 0.4 ms if
//!   the rate changed shortly before.
//! - The system is suspended, or its virtual machine is moved or restored.
//! - The process enters another time namespace (time_namespaces(7)).
//! - Somebody sets `CLOCK_REALTIME`, for [`realtime`].
//!
//! The clock notices such an event when the segment ends: after at most 17 ms, or 34 ms if the
//! counter is now half as fast. If the rate differs by more than 1/4 then, the counter is measured
//! again, and the vDSO answers meanwhile. An event during the measurement can make the first
//! segment wrong in the same way.
//!
//! # Where the clock must not be used
//!
//! - A thread that may not read the counter (`PR_SET_TSC`, strict seccomp) gets SIGSEGV, as it does
//!   in a vDSO that reads the counter.
//! - Call [`forbid_system_calls`] before a thread enters a sandbox that kills for `prctl`,
//!   `openat`, `read`, `close` or `clock_gettime`: some reads make these
//!   calls. If a sandbox returns an error, or there is no /sys, the vDSO answers, and the clock
//!   asks again after a second ([`Status::Unknown`]).
//! - If a process forks while another thread updates the clock, the child cannot update it: the
//!   vDSO answers there after the segment has ended ([`Status::Updating`]).
//!
#![doc = include_str!("glossary.md")]
//!
//! # How it works
//!
//! 1. The first reads measure the counter's rate, in 11 ms or more. The vDSO answers meanwhile.
//! 2. A segment gives the time of each tick for 8 to 16 ms, or for 2 to 4 ms for some time after
//!    the kernel's rate changed.
//! 3. In the last 1/256 of a segment, one reader reads both clocks side by side and makes the next
//!    one. It begins where the old one ends. Its rate differs from the measured one by at most 1/4,
//!    so that it approaches the kernel's clock.
//! 4. If no reader came in time, the vDSO answers. A read within 1 ms of such a read makes a new
//!    segment. For a monotonic read, one of the wall clock does not count, because its time is in
//!    another cache line.
//!
//! # When the counter is used
//!
//! The counter is used only if the kernel keeps its time by it: `current_clocksource` is `tsc`,
//! `arch_sys_counter`, `riscv_clocksource`, `tod` or `Constant`. Such a kernel checks that the
//! counters of the CPUs agree. The clock asks the kernel at the first read, and again
//!
//! - every 10 s, also while it keeps its time by another clock source;
//! - if the counter and the clock diverge by more than adjtimex(2) can explain;
//! - if reading the clock takes three times as long as before, eight times in a row.
//!
//! [`check`] asks at once. The counter is also refused
//!
//! - if a read of it takes at least half as long as a system call ([`Status::Trapped`]);
//! - if its rate, measured by `CLOCK_MONOTONIC_RAW`, is impossible or not the one that the hardware
//!   states in CPUID 0x15 or `CNTFRQ` ([`Status::Frequency`]).
//!
//! The clock tries again after 1 to 640 s. Meanwhile a read costs what the vDSO costs, and an
//! ordered read one fence more. [`statistics`] counts refusals.

#![no_std]
#![cfg(any(feature = "std", all(any(target_os = "linux", target_os = "android"), not(vdso_time_other_os))))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    any(vdso_time_other_os, not(any(target_os = "linux", target_os = "android"))),
    allow(dead_code, reason = "most of it is for Linux")
)]

#[cfg(feature = "std")]
extern crate std;

mod arch;
mod baseline;
mod bounded;
mod clock;
mod discipline;
mod high_water;
mod interval;
mod latch;
mod machine;
mod offset;
mod recent;
mod sample;
mod segment;
mod state;
mod status;
mod ticks;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(vdso_time_other_os)))]
mod timex;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(vdso_time_other_os)))]
mod vmclock;
mod wall;

use arch::native;
pub use baseline::Baseline;
pub use bounded::ClockStatus;
use clock::CounterClock;
pub use interval::{Interval, realtime_bounded, set_max_drift_ppb};
use machine::Native;
#[cfg(feature = "std")]
pub use recent::Refresher;
pub use recent::{recent, refresh};
use sample::Source;
pub use status::{State, Statistics, Status};
pub use ticks::Ticks;
use vdso_time::{ClockId, Errno, Instant, MonotonicClock, clock_gettime};
pub use wall::{Wall, realtime_error_bound, resync};

static CLOCK: CounterClock<Native> = CounterClock::new(Native);
// It cannot straddle a page. A fork copies page by page, and could cut an update in two.
const _: () = assert!(size_of::<CounterClock<Native>>() == align_of::<CounterClock<Native>>());

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds, by the counter.
///
/// It does not go back within a thread, except as [Order](self#order) says.
///
/// # Panics
///
/// If the vDSO has to answer and a sandbox denies every way to read the clock.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// let start = counter::monotonic();
/// println!("{} ns", counter::monotonic() - start);
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn monotonic() -> u64 {
    answer(CLOCK.monotonic(Native::ticks), || CLOCK.slow_monotonic(), kernels_monotonic)
}

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds, by an ordered read of the counter.
///
/// The CPU reads the counter after everything before it is done. So the time is not earlier than
/// one that any thread read before, except as [Order](self#order) says.
///
/// # Panics
///
/// As [`monotonic`].
///
/// # Examples
///
/// ```
/// use std::thread;
/// use vdso_time_counter as counter;
///
/// let here = counter::monotonic_ordered();
/// let there = thread::spawn(counter::monotonic_ordered).join().unwrap();
/// assert!(here <= there);
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn monotonic_ordered() -> u64 {
    answer(CLOCK.monotonic_ordered(), || CLOCK.slow_monotonic(), kernels_monotonic)
}

/// Returns the time of `CLOCK_REALTIME` in nanoseconds since the Epoch, by the counter.
///
/// It goes back only if `CLOCK_REALTIME` does, except as [Order](self#order) says. If somebody sets
/// the clock, the next segment follows, or [`resync`] makes it follow at once. A leap second is a
/// step, too: the kernel sets its clock back by a second (`STA_INS`).
///
/// # Panics
///
/// As [`monotonic`].
///
/// # Examples
///
/// ```
/// assert!(vdso_time_counter::realtime() > 1_700_000_000_000_000_000);
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn realtime() -> i64 {
    answer(CLOCK.realtime(Native::ticks), || CLOCK.slow_realtime(), kernels_realtime)
}

/// Returns the counter's value.
///
/// On arm the counter can be read only if the kernel's vDSO reads it. There, and on machines
/// without a counter, this returns the nanoseconds of [`monotonic`].
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// let start = counter::ticks();
/// println!("{} ticks", counter::ticks() - start);
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn ticks() -> u64 {
    if native::IS_READABLE { native::ticks() } else { monotonic() }
}

/// Returns the counter's value, read after everything before it is done.
///
/// Otherwise it is the same as [`ticks`].
#[inline]
#[must_use]
#[track_caller]
pub fn ticks_ordered() -> u64 {
    if native::IS_READABLE {
        native::complete_loads();
        native::ticks_ordered()
    } else {
        monotonic_ordered()
    }
}

/// Returns whether the counter is used and how accurate it is, as of one moment.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// let now = counter::monotonic();
/// let state = counter::state();
/// println!("{now} ns, give or take {} ns: {}", state.error_bound, state.status);
/// ```
#[must_use]
pub fn state() -> State {
    let state = CLOCK.state();
    State { frequency: tick_frequency(state.frequency), ..state }
}

/// Returns whether the counter is used, or why not: [`State::status`].
#[must_use]
pub fn status() -> Status {
    CLOCK.status()
}

/// Returns how far a [`monotonic`] of this moment may be from `CLOCK_MONOTONIC`, in
/// nanoseconds: [`State::error_bound`]. It measures that by a read of both clocks.
#[must_use]
pub fn error_bound() -> u64 {
    state().error_bound
}

/// Returns what the clock has done so far: segments, calibrations, refusals, errors.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// let _ = counter::monotonic();
/// println!("{} segments", counter::statistics().segments);
/// ```
#[must_use]
pub fn statistics() -> Statistics {
    CLOCK.statistics()
}

/// Forbids the clock's system calls, for the rest of the process's life.
///
/// Otherwise the clock asks the kernel for its clock source: at the first read, every 10 s, if the
/// clocks diverge, and if reading them takes three times as long as before. After this call it does
/// not. What it cannot decide without asking falls back to the vDSO, with
/// [`Status::SystemCallsForbidden`]. [`check`] still asks.
///
/// This is all to call before a sandbox that kills, once [`status`] is no longer
/// [`Status::Calibrating`]. It calls [`vdso_time::warm_up`], so the first read makes no system call
/// either. Called before the first read, it forbids the counter for good. Called during the
/// calibration, it leaves out the comparison with `CLOCK_MONOTONIC_RAW` and the test for trapped
/// reads.
///
/// The vDSO itself makes a system call where the kernel's clock source cannot be read in user
/// space.
///
/// # Examples
///
/// ```
/// use vdso_time_counter::{self as counter, Status};
///
/// while counter::status() == Status::Calibrating {
///     let _ = counter::monotonic();
/// }
/// counter::forbid_system_calls();
/// // Enter the sandbox here.
/// ```
pub fn forbid_system_calls() {
    vdso_time::warm_up();
    CLOCK.forbid_system_calls();
}

/// Returns the number of [`ticks`] per second: [`State::frequency`].
#[must_use]
pub fn frequency() -> Option<u64> {
    tick_frequency(CLOCK.frequency())
}

/// Returns how many [`ticks`] took how many nanoseconds since the counter was measured, once it is
/// measured.
///
/// It is the mean rate in that time, relative to `CLOCK_MONOTONIC`. The baseline grows with each
/// segment, and begins again if the counter is measured again.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// let start = counter::ticks();
/// let passed = counter::ticks() - start;
/// if let Some(baseline) = counter::baseline() {
///     println!("{passed} ticks are {} ns", baseline.nanos_of(passed));
/// }
/// ```
#[must_use]
pub fn baseline() -> Option<Baseline> {
    let baseline = CLOCK.baseline()?;
    let ticks = if native::IS_READABLE { baseline.ticks } else { baseline.nanos };
    Some(Baseline { ticks, ..baseline })
}

/// The frequency of [`ticks`], given the counter's.
fn tick_frequency(frequency: Option<u64>) -> Option<u64> {
    if native::IS_READABLE { frequency } else { frequency.and(Some(1_000_000_000)) }
}

/// Checks whether the counter will be used in this process, before it is measured.
///
/// It asks the kernel whether it keeps its time by the counter and whether this thread may read it.
/// After some reads, [`status`] agrees, or is [`Status::Frequency`] if the measured rate is not the
/// stated one. A program can call this before its first read, to choose a clock.
///
/// Each call makes system calls: `prctl`, `openat`, `read` and `close`. The first call also makes
/// those of the first call of this crate. The clock does not change.
///
/// # Errors
///
/// The reason why the counter will not be used, or why it was refused for some time.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// match counter::check() {
///     Ok(()) => println!("reads will use the counter"),
///     Err(why) => println!("the vDSO will answer: {why}"),
/// }
/// ```
pub fn check() -> Result<(), Status> {
    CLOCK.check()
}

/// The clock of [`monotonic_ordered`], as a type.
///
/// # Examples
///
/// ```
/// use vdso_time::MonotonicClock;
/// use vdso_time_counter::Counter;
///
/// let start = Counter::now();
/// println!("{:?}", start.elapsed());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {}

impl MonotonicClock for Counter {
    #[inline]
    fn try_now() -> Result<Instant<Self>, Errno> {
        let Some(nanos) = CLOCK.monotonic_ordered() else {
            unlikely();
            let nanos = CLOCK.slow_monotonic().map_or_else(kernels_monotonic, Ok)?;
            return Ok(Instant::from_nanos(nanos as i64));
        };
        Ok(Instant::from_nanos(nanos as i64))
    }
}

impl Counter {
    /// Converts a time of this clock, which is on the scale of `CLOCK_MONOTONIC`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Instant, MonotonicClock};
    /// use vdso_time_counter::Counter;
    ///
    /// let start: Instant = Counter::to_monotonic(Counter::now());
    /// println!("{:?}", start.elapsed());
    /// ```
    #[inline]
    #[must_use]
    pub const fn to_monotonic(time: Instant<Self>) -> Instant {
        Instant::from_nanos(time.as_nanos())
    }
}

/// The kernel's answer, or why there is none.
fn kernels_monotonic() -> Result<u64, Errno> {
    clock_gettime(ClockId::MONOTONIC).map(|time| machine::nanos(time) as u64)
}

fn kernels_realtime() -> Result<i64, Errno> {
    clock_gettime(ClockId::REALTIME).map(machine::nanos)
}

/// The answer of a fast read, or else of a slow one.
#[inline]
#[track_caller]
fn answer<T>(fast: Option<T>, slow: impl FnOnce() -> Option<T>, kernels: fn() -> Result<T, Errno>) -> T {
    if let Some(time) = fast {
        return time;
    }
    unlikely();
    match slow() {
        Some(time) => time,
        None => denied(kernels),
    }
}

/// Makes the branch that calls it an unlikely one.
#[cold]
#[inline]
fn unlikely() {}

/// Reads a clock again that was denied.
#[cold]
#[inline(never)]
#[track_caller]
fn denied<T>(read: fn() -> Result<T, Errno>) -> T {
    match read() {
        Ok(time) => time,
        Err(error) => panic!("the clock cannot be read: {error}"),
    }
}
