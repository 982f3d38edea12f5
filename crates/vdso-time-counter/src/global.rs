//! The one clock of this process, and the crate's free functions, which act on it. The clock types
//! that read it are in [`super::clocks`].

use vdso_time::Errno;

use super::engine::clock::CounterClock;
use super::engine::status::{State, Status, Unavailable};
use super::machine::Native;
use super::machine::arch::{Counter as _, CpuCounter};

pub(super) static CLOCK: CounterClock<Native> = CounterClock::new(Native);
// The clock must not cross a page boundary. A fork copies page by page, so the child could get only
// half of an update that spans two pages. A clock whose size is its alignment is always within one
// page.
const _: () = assert!(size_of::<CounterClock<Native>>() == align_of::<CounterClock<Native>>());

/// Returns whether the counter is used, how accurate it is, and what the clock has done so far.
///
/// All values are from one moment. The call reads the counter and the kernel's clock, but it makes
/// no segment and does not ask the kernel for its clock source. Before the first reads the status
/// is `Calibrating`, which does not show whether the counter will be used. To find that out, call
/// [`check`].
#[must_use]
pub fn state() -> State {
    let state = CLOCK.state();
    if CpuCounter::IS_READABLE || state.frequency.is_none() {
        return state;
    }
    State {
        frequency: Some(1_000_000_000),
        ..state
    }
}

/// Checks whether the counter will be used in this process, before it is measured.
///
/// A program calls it once, to choose a clock before the first read. After the first reads,
/// [`state`] gives the same answer without system calls. `check` makes the system calls of [this
/// table](super#in-a-sandbox), but none after [`prepare_for_sandbox`]. It takes
/// [`trust_hypervisor`] into account. It cannot predict [`Unavailable::Frequency`], which only a
/// measurement finds.
///
/// # Errors
///
/// If the counter will not be used, either permanently or for some time. The error says why.
pub fn check() -> Result<(), Unavailable> {
    CLOCK.check()
}

/// Prepares the clock for a sandbox: measures the counter, and forbids the clock's system calls.
///
/// A library should never call this, because only the program knows its sandbox. The effect lasts
/// for the rest of the process's life.
///
/// It calls [`vdso_time::warm_up`], and reads the clock until the counter is measured, for at most
/// 50 ms. From then on the clock makes none of [its system calls](super#in-a-sandbox), even if 50
/// ms were not enough. Where the clock would have to ask the kernel, it falls back to the vDSO
/// instead ([`Unavailable::SystemCallsForbidden`]). If the vDSO cannot read the clock source in
/// user space, its reads still make system calls. To find out about that, call [`check`] first.
///
/// Returns the status with which the program enters the sandbox. A second call changes nothing and
/// returns the present status. A read that another thread began before the call may still make
/// system calls.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// let status = counter::prepare_for_sandbox();
/// println!("in the sandbox {status}");
/// // Enter the sandbox here.
/// ```
pub fn prepare_for_sandbox() -> Status {
    vdso_time::warm_up();
    CLOCK.prepare_for_sandbox()
}

/// Trusts the hypervisor's statement about the counter instead of the CPU's.
///
/// A library should never call this, because only the operator of the program knows whether the
/// virtual machine can be moved. The effect lasts for the rest of the process's life.
///
/// Under `kvm-clock` the counter is used if the CPU has the invariant bit (CPUID). The bit
/// promises, for the guest's life, that no move changes the counter's rate or offset. QEMU hides
/// the bit by default, so that it can move the guest. Without the bit the status is
/// [`Unavailable::NotInvariant`].
///
/// After this call the counter is used without the bit as well, as long as the hypervisor's page
/// says that the counters of all CPUs agree. That statement holds only for the moment: the vDSO
/// checks it at each read, but this clock notices a change only when a segment ends. So a move, a
/// restore, a stop or an added CPU can make a read wrong until then: the
/// [table](super#events-that-make-a-read-wrong) says by how much and for how long.
///
/// It changes nothing under other clock sources.
///
/// Call it before other threads read the clock. If a first read is under way in another thread, the
/// call can succeed although that read has decided without it. The effect then begins within 10 s.
///
/// # Errors
///
/// `EBUSY` if the clock was read before: the first read has already decided whether the counter is
/// used, so this call changes nothing. A call after a successful one succeeds as well.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// counter::trust_hypervisor().expect("main() calls it before the first read");
/// ```
pub fn trust_hypervisor() -> Result<(), Errno> {
    if CLOCK.trust_hypervisor() {
        Ok(())
    } else {
        Err(Errno::EBUSY)
    }
}
