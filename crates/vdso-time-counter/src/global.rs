//! The clock of this process, and its functions, except those of the types in [`super::clocks`].

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use core::time::Duration;

use vdso_time::Errno;

use super::engine::bounded::{Bounds, GROWTH};
use super::engine::clock::{CounterClock, duration};
use super::engine::interval::Interval;
use super::engine::status::{Refusal, State, Statistics};
use super::machine::Native;
use super::machine::arch::{Counter as _, CpuCounter};

pub(super) static CLOCK: CounterClock<Native> = CounterClock::new(Native);
// It is in one page. A fork copies page by page, and could cut an update of two pages in two.
const _: () = assert!(size_of::<CounterClock<Native>>() == align_of::<CounterClock<Native>>());
static BOUNDS: Bounds = Bounds::new();
const _: () = assert!(size_of::<Bounds>() == align_of::<Bounds>());
static MAX_DRIFT: AtomicU32 = AtomicU32::new(GROWTH as u32);

/// Returns whether the counter is used and how accurate it is, as of one moment.
///
/// It reads both clocks, makes no segment, and does not ask the kernel for its clock source. So it
/// is for a program that reads the clock. Before the first reads the status is `Calibrating`: then
/// [`check`] says what to expect.
#[must_use]
pub fn state() -> State {
    let state = CLOCK.state();
    if CpuCounter::IS_READABLE {
        return state;
    }
    State { frequency: state.frequency.and(Some(1_000_000_000)), ..state }
}

/// Returns what the clock has done so far: segments, calibrations, refusals, errors.
#[must_use]
pub fn statistics() -> Statistics {
    CLOCK.statistics()
}

/// Checks whether the counter will be used in this process, before it is measured.
///
/// A program calls it once, to choose a clock before the first read. From then on [`state`] says
/// what the clock does, without these system calls. After some reads its status agrees, or is
/// [`Refusal::Frequency`] if the measured rate is not the stated one.
///
/// It asks the kernel whether it keeps its time by the counter and whether this thread may read it,
/// by the system calls `prctl`, `openat`, `read` and `close` and those of vdso-time's first call.
///
/// # Errors
///
/// The reason why the counter will not be used, or why it was refused for some time.
pub fn check() -> Result<(), Refusal> {
    CLOCK.check()
}

/// Forbids the clock's system calls, for the rest of the process's life.
///
/// Otherwise the clock asks the kernel for its clock source: at the first read, every 10 s, if the
/// clocks diverge, and if reading them takes three times as long as before. After this call it does
/// not. What it cannot decide without asking falls back to the vDSO, with
/// [`Refusal::SystemCallsForbidden`]. [`check`] still asks.
///
/// This is all to call before a sandbox that kills, once the status is no longer
/// [`Calibrating`](super::Status::Calibrating). A read that another thread began before this call
/// may still make these system calls. It calls [`vdso_time::warm_up`], too. Called before
/// the first read, it forbids the counter for good. Called during the calibration, it leaves out
/// the comparison with `CLOCK_MONOTONIC_RAW` and the test for trapped reads. The vDSO itself makes
/// a system call where the kernel's clock source cannot be read in user space.
///
/// # Examples
///
/// ```
/// use vdso_time_counter::{self as counter, Status};
///
/// while counter::state().status == Status::Calibrating {
///     let _ = counter::monotonic();
/// }
/// counter::forbid_system_calls();
/// // Enter the sandbox here.
/// ```
pub fn forbid_system_calls() {
    vdso_time::warm_up();
    CLOCK.forbid_system_calls();
}

/// Makes [`realtime`](super::realtime) follow the kernel's wall clock at once. Returns whether it
/// does.
///
/// A thread calls this after a successful clock_settime(2). Each read that happens after it sees
/// the step. Without it the clock sees the step when the segment ends: within 17 ms.
///
/// It measures the offset between the two clocks again. So `realtime` can go back by the error of
/// that, some 10 ns, even if nobody set the clock.
///
/// It returns `false` if a sandbox denies the clock, after 10 us if another caller is updating the
/// clock (a signal handler can have interrupted it, or a fork cut it off), and after 100 us in any
/// case.
#[must_use]
pub fn resync() -> bool {
    CLOCK.resync()
}

/// Returns how far the next [`realtime`](super::realtime) may be from `CLOCK_REALTIME`, unless
/// somebody sets the clock before. [`Duration::MAX`] if a sandbox denies the clocks.
///
/// It is the [error bound](State::error_bound) and the error of the offset between the two clocks.
/// So it includes a step that `realtime` does not follow yet.
#[must_use]
pub fn realtime_error_bound() -> Duration {
    duration(CLOCK.realtime_error_bound())
}

/// Returns two limits between which the true time is.
///
/// The limits are the kernel's wall clock, plus and minus
///
/// - `maxerror` of adjtimex(2): the error that the program states which keeps the clock;
/// - `offset` of adjtimex(2), which the kernel has yet to correct, and a third of it, which it may
///   be correcting at the moment;
/// - by how much the kernel slews its clock (`tick` of adjtimex(2)) since it was asked: at most 100
///   ms;
/// - the [drift](set_max_drift_ppb) since the statement, and that of one second more;
/// - the [error bound](super::State::error_bound), and 3 us for rounding.
///
/// The kernel is asked once a second, and again if the wall clock is set. So what a program stated,
/// and the status, are up to a second old. A step is seen when [`realtime`](super::realtime) sees
/// it. Until then the limits are those of the clock before the step. Each call looks at a VM clock.
///
/// A sandbox may kill for adjtimex(2), as Android's may.
///
/// # Errors
///
/// - `EPERM`, if a sandbox denies the clocks, or else its error for adjtimex(2).
/// - `EPERM` after [`forbid_system_calls`](super::forbid_system_calls), from a second after the
///   last answer of the kernel on.
/// - `ENOSYS` on systems other than Linux, and where every call goes through libc.
pub fn realtime_bounded() -> Result<Interval, Errno> {
    BOUNDS.limits(&CLOCK, MAX_DRIFT.load(Relaxed))
}

/// Sets how much faster or slower than the truth the clock is at most, in parts per billion, since
/// a program stated its error. [`realtime_bounded`] uses it in the whole process, so a library
/// leaves the choice to the program.
///
/// The default is 500,000: what the kernel adds to `maxerror`, and what it corrects at most. So it
/// is right for every oscillator that NTP can keep. Set less only if you know the oscillator:
/// ClockBound advises 50,000, and `maxclockerror 50` in chronyd's configuration.
///
/// The drift is counted from the first call after a statement. Until then it is the kernel's. So a
/// smaller value has an effect if the calls come more often than the statements.
pub fn set_max_drift_ppb(ppb: u32) {
    MAX_DRIFT.store(ppb, Relaxed);
}
