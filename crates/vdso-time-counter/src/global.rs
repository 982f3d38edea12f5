//! The clock of this process, and its functions, except those of the types in [`super::clocks`].

use core::sync::atomic::Ordering::Relaxed;

use super::engine::clock::CounterClock;
use super::engine::status::{Refusal, State, Statistics};
use super::machine::arch::{Counter as _, CpuCounter};
use super::machine::{Native, TRUSTS_HYPERVISOR};

pub(super) static CLOCK: CounterClock<Native> = CounterClock::new(Native);
// It is in one page. A fork copies page by page, and could cut an update of two pages in two.
const _: () = assert!(size_of::<CounterClock<Native>>() == align_of::<CounterClock<Native>>());

/// Returns whether the counter is used and how accurate it is, as of one moment.
///
/// It reads both clocks, makes no segment, and does not ask for the clock source. Before the first
/// reads the status is `Calibrating`: then [`check`] says what to expect.
#[must_use]
pub fn state() -> State {
    let state = CLOCK.state();
    if CpuCounter::IS_READABLE {
        return state;
    }
    State {
        frequency: state.frequency.and(Some(1_000_000_000)),
        ..state
    }
}

/// Returns what the clock has done so far.
#[must_use]
pub fn statistics() -> Statistics {
    CLOCK.statistics()
}

/// Checks whether the counter will be used in this process, before it is measured.
///
/// A program calls it once, to choose a clock before the first read; then [`state`] says the same
/// without system calls. It makes those of the page's [table](super#in-a-sandbox). Only
/// [`Refusal::Frequency`] is not known before some reads.
///
/// # Errors
///
/// The reason why the counter will not be used, or why it was refused for some time.
pub fn check() -> Result<(), Refusal> {
    CLOCK.check()
}

/// Forbids the clock's system calls, for the rest of the process's life.
///
/// What the clock cannot decide without asking falls back to the vDSO, with
/// [`Refusal::SystemCallsForbidden`]. [In a sandbox](super#in-a-sandbox) says when it would ask. A
/// vDSO that cannot read the clock source in user space goes on making system calls.
///
/// Call it before a sandbox that kills, once the status is no longer
/// [`Calibrating`](super::Status::Calibrating); before the first read it forbids the counter for
/// good. It calls [`vdso_time::warm_up`], too. A read that another thread began before may still
/// ask, and so does [`check`].
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
/// Under `kvm-clock` the counter is used if the CPU has the invariant bit (CPUID). That is a
/// promise for the guest's life: no move changes the counter's rate or offset. QEMU hides the bit
/// by default, to be able to move the guest. Then the status is [`Refusal::NotInvariant`].
///
/// After this call the counter is used there, too, while the hypervisor's page says that the
/// counters of all CPUs agree. That is a verdict of the instant: the vDSO looks at it at each read,
/// this clock when a segment ends. So a move, a restore, a stop or an added CPU can make a read
/// wrong for up to 17 ms: see [Under a hypervisor](super#under-a-hypervisor).
///
/// It changes nothing under other clock sources. Call it before the first read; later it takes
/// effect after 10 s.
pub fn trust_hypervisor() {
    TRUSTS_HYPERVISOR.store(true, Relaxed);
}
