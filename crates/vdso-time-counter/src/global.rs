//! The clock of this process, and its functions, except those of the types in [`super::clocks`].

use super::engine::clock::CounterClock;
use super::engine::status::{Refusal, State, Statistics};
use super::machine::Native;
use super::machine::arch::{Counter as _, CpuCounter};

pub(super) static CLOCK: CounterClock<Native> = CounterClock::new(Native);
// It is in one page. A fork copies page by page, and could cut an update of two pages in two.
const _: () = assert!(size_of::<CounterClock<Native>>() == align_of::<CounterClock<Native>>());

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
/// Then [`is_faster_than_syscall`](vdso_time::is_faster_than_syscall) tests the vDSO by time.
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
/// clocks diverge, and if reading them takes three times as long as before (under `kvm-clock` 1.25
/// times, so a CPU that becomes slower is enough). After this call it does not. What it cannot
/// decide without asking falls back to the vDSO, with [`Refusal::SystemCallsForbidden`]. [`check`]
/// still asks.
///
/// This is all to call before a sandbox that kills, once the status is no longer
/// [`Calibrating`](super::Status::Calibrating). A read that another thread began before this call
/// may still make these system calls. It calls [`vdso_time::warm_up`], too. Called before
/// the first read, it forbids the counter for good. Called during the calibration, it leaves out
/// the comparison with `CLOCK_MONOTONIC_RAW`. The vDSO itself makes a system call where the
/// kernel's clock source cannot be read in user space.
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

/// Takes the hypervisor's word for the counter, instead of the CPU's, for the rest of the process's
/// life.
///
/// Under the clock source `kvm-clock` the counter is used if the CPU states that its rate is
/// constant (CPUID's invariant bit). That is a promise for the guest's life: no move changes the
/// counter's rate or offset. A hypervisor hides the bit to be able to move the guest to a CPU
/// without it; QEMU does so by default. Then the status is [`Refusal::NotInvariant`], and the vDSO
/// answers.
///
/// After this call the counter is used there, too, while the hypervisor says that the counters of
/// all CPUs agree. That is a verdict of the instant: the vDSO looks at it at each read, this clock
/// only when a segment ends, at most 17 ms later. So a move, a restore, a stop and a CPU that is
/// added can make a read wrong until then. [Under a hypervisor](super#under-a-hypervisor) says by
/// how much.
///
/// It changes nothing under any other clock source. Call it before the first read; later it takes
/// effect after 10 s.
pub fn trust_hypervisor() {
    super::machine::trust_hypervisor();
}
