//! [`Status`]: whether the counter is used, or why not. [`State`]: the status and what goes with
//! it.

use core::fmt;

/// What [`state`](super::state) returns: values that belong together, all from one moment.
///
/// ```
/// use vdso_time::counter::{self, Status};
///
/// let state = counter::state();
/// println!("{}, to {} ns", state.status, state.error_bound);
/// // A line that ends meanwhile changes the next state, never this one.
/// if state.status == Status::Used {
///     assert!(state.error_bound > 0 && state.frequency.is_some());
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct State {
    /// Whether the counter answers, or why the vDSO does: see [`status`](super::status).
    pub status: Status,
    /// How far a read may be from `CLOCK_MONOTONIC`, in nanoseconds: see
    /// [`error_bound`](super::error_bound).
    pub error_bound: u64,
    /// How many ticks a second has, once it is measured: see [`frequency`](super::frequency).
    pub frequency: Option<u64>,
}

/// Whether the counter answers, or why the vDSO does.
///
/// ```
/// use vdso_time::counter::{self, Status};
///
/// let now = counter::monotonic();
/// println!("{now} ns; {}", counter::status());
/// assert_ne!(counter::status(), Status::CpusDisagree);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// The counter answers.
    Used,
    /// The counter's rate is being measured. That takes 10 ms of reads; reads more than a second
    /// apart never measure it. It is measured again if the counter and the kernel's clock went
    /// apart: the system was suspended, the virtual machine moved or restored, or the process came
    /// into another time namespace.
    Calibrating,
    /// No read came in time to make the next line. The next read goes to the vDSO and makes one.
    Stale,
    /// As [`Stale`](Self::Stale), but another caller is making the next line. If this stays, the
    /// process was forked while another thread made a line. Then the vDSO answers for the rest of
    /// the process's life.
    Claimed,
    /// There is no counter that this crate can read, or the vDSO does not read it, or the program
    /// is built for CPUs without 64-bit atomics (ARMv5 and older).
    NoCounter,
    /// The kernel keeps its time by something else: see its `current_clocksource`.
    ClockSource,
    /// The file that names the kernel's clock source cannot be read: there is no /sys, or a sandbox
    /// denies it. It is tried again after a second.
    Unknown,
    /// The counter's rate depends on the CPU's (CPUID 0x80000007: not invariant).
    NotInvariant,
    /// The thread that asked must not read the counter (prctl(2), `PR_SET_TSC`), and its vDSO does
    /// not read it either. Otherwise the thread gets SIGSEGV.
    Denied,
    /// The counter's rate is not the one that the hardware states (CPUID 0x15, `CNTFRQ`), is not
    /// one that a counter can have, or was not the same twice, as where the counters of two CPUs
    /// differ.
    Frequency,
    /// The counters of two CPUs differ by more than a correction can be.
    CpusDisagree,
}

impl Status {
    /// Whether it is what one thread was refused, or could not open just then: so it is asked
    /// again.
    pub(super) const fn is_refusal(self) -> bool {
        matches!(self, Self::Unknown | Self::Denied)
    }

    /// As a number, and back.
    pub(super) const ALL: [Self; 11] = [
        Self::Calibrating,
        Self::Used,
        Self::Stale,
        Self::Claimed,
        Self::NoCounter,
        Self::ClockSource,
        Self::Unknown,
        Self::NotInvariant,
        Self::Denied,
        Self::Frequency,
        Self::CpusDisagree,
    ];
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Used => "the counter answers",
            Self::Calibrating => "the vDSO answers while the counter's rate is measured",
            Self::Stale => "the vDSO answers the next read, which makes a new line",
            Self::Claimed => {
                "the vDSO answers until another caller has made a new line, which a fork may have lost"
            }
            Self::NoCounter => "the vDSO reads no counter that can be read here",
            Self::ClockSource => "the kernel does not keep the time by the counter",
            Self::Unknown => "what the kernel keeps the time by cannot be read",
            Self::NotInvariant => "the counter's rate depends on the CPU's",
            Self::Denied => "this thread must not read the counter",
            Self::Frequency => "the counter's rate is not the one that the hardware states",
            Self::CpusDisagree => "the CPUs' counters differ",
        })
    }
}

/// The error of [`check`](super::check).
impl core::error::Error for Status {}
