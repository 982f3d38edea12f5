//! [`Status`]: whether the counter answers, or why not. [`State`]: the status with its error bound
//! and frequency.

use core::fmt;

/// The status, the error bound and the frequency of one moment, from [`state`](super::state).
///
/// # Examples
///
/// ```
/// use vdso_time::counter::{self, Status};
///
/// let state = counter::state();
/// println!("{}, to {} ns", state.status, state.error_bound);
/// // The values stay consistent, even if the segment ends now.
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
    /// The number of ticks per second, once it is measured: see [`frequency`](super::frequency).
    pub frequency: Option<u64>,
}

/// Whether the counter answers, or why the vDSO does.
///
/// # Examples
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
    /// The counter's rate is being measured.
    ///
    /// That takes 10 ms of reads. Reads more than a second apart never measure it. It is measured
    /// again after the counter and the kernel's clock diverged: the system was suspended, the
    /// virtual machine was moved or restored, or the process entered another time namespace.
    Calibrating,
    /// No read came in time to make the next segment. The next read asks the vDSO and makes one.
    Stale,
    /// As [`Stale`](Self::Stale), but another caller is updating the clock.
    ///
    /// If this stays, the process was forked while another thread updated the clock. Then the vDSO
    /// answers for the rest of the process's life.
    Updating,
    /// There is no counter that this crate can read, or the vDSO does not read it, or the program
    /// is built for CPUs without 64-bit atomics (ARMv5 and older).
    NoCounter,
    /// The kernel keeps its time by another clock source: see its `current_clocksource`.
    ClockSource,
    /// The file that names the kernel's clock source cannot be read: there is no /sys, or a sandbox
    /// denies it. The clock tries again after a second.
    Unknown,
    /// The counter's rate depends on the CPU's (CPUID 0x80000007: not invariant).
    NotInvariant,
    /// The calling thread must not read the counter (prctl(2), `PR_SET_TSC`), and its vDSO does not
    /// read it either. The clock tries again after a second.
    Denied,
    /// The counter's rate is impossible, changes, or is not the one that the hardware states (CPUID
    /// 0x15, `CNTFRQ`). The cause can be CPUs whose counters differ.
    Frequency,
    /// The counters of two CPUs differ by more than a correction can be.
    CpusDisagree,
}

impl Status {
    /// All, in the order of their codes.
    const ALL: [Self; 11] = [
        Self::Used,
        Self::Calibrating,
        Self::Stale,
        Self::Updating,
        Self::NoCounter,
        Self::ClockSource,
        Self::Unknown,
        Self::NotInvariant,
        Self::Denied,
        Self::Frequency,
        Self::CpusDisagree,
    ];

    /// The status whose `as u8` is this.
    pub(super) fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Unknown)
    }

    /// Whether the reason may vanish: a thread's right, or a file that could not be opened.
    pub(super) const fn is_temporary(self) -> bool {
        matches!(self, Self::Unknown | Self::Denied)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Used => "the counter answers",
            Self::Calibrating => "the vDSO answers while the counter's rate is measured",
            Self::Stale => "the vDSO answers the next read, which makes a new segment",
            Self::Updating => "the vDSO answers while another caller updates the clock (a fork can lose it)",
            Self::NoCounter => "the vDSO reads no counter that this program can read",
            Self::ClockSource => "the kernel does not keep its time by the counter",
            Self::Unknown => "the name of the kernel's clock source cannot be read",
            Self::NotInvariant => "the counter's rate depends on the CPU's",
            Self::Denied => "this thread must not read the counter",
            Self::Frequency => "the counter's rate is not the one that the hardware states",
            Self::CpusDisagree => "the counters of two CPUs differ",
        })
    }
}

/// The error of [`check`](super::check).
impl core::error::Error for Status {}
