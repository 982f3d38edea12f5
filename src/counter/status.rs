//! [`Status`]: whether the counter answers, or why not. [`State`]: the status with its error bound
//! and frequency.

use core::fmt;

/// What is known of the clock at one moment, from [`state`](super::state).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct State {
    /// Whether the counter answers, or why the vDSO does. It can change when a segment ends.
    pub status: Status,
    /// How far the next [`monotonic`](super::monotonic) may be from `CLOCK_MONOTONIC`, in
    /// nanoseconds. [Accuracy](super#accuracy) lists the events after which that does not hold until
    /// the segment ends.
    ///
    /// While the vDSO answers, it is the lead that the clock keeps because it does not go back:
    /// usually 0. If another thread or a signal handler makes a segment before the next read, the
    /// bound of that segment applies.
    pub error_bound: u64,
    /// The number of [`ticks`](super::ticks) per second, once it is measured. `None` while the
    /// counter is not used. Where `ticks` returns nanoseconds, it is 1,000,000,000.
    pub frequency: Option<u64>,
}

macro_rules! statuses {
    ($($(#[$doc:meta])+ $Status:ident: $text:literal,)+) => {
        /// Whether the counter answers, or why the vDSO does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Status {
            $($(#[$doc])+ $Status,)+
        }

        impl Status {
            /// All, in the order of their codes.
            const ALL: &[Self] = &[$(Self::$Status),+];
        }

        impl fmt::Display for Status {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$Status => $text),+ })
            }
        }
    };
}

statuses! {
    /// The counter answers.
    Used: "the counter answers",
    /// The counter's rate is being measured.
    ///
    /// That takes 10 ms of reads. Reads more than a second apart never measure it. It is measured
    /// again after the counter and the kernel's clock diverged: the system was suspended, the
    /// virtual machine was moved or restored, or the process entered another time namespace.
    Calibrating: "the vDSO answers while the counter's rate is measured",
    /// No read came in time to make the next segment. The next read asks the vDSO and makes one.
    Stale: "the vDSO answers the next read, which makes a new segment",
    /// As [`Stale`](Self::Stale), but another caller is updating the clock.
    ///
    /// If this stays, the process was forked while another thread updated the clock. Then the vDSO
    /// answers for the rest of the process's life.
    Updating: "the vDSO answers while another caller updates the clock (a fork can lose it)",
    /// There is no counter that this crate can read, or the vDSO does not read it, or the program
    /// is built for CPUs without 64-bit atomics (ARMv5 and older).
    NoCounter: "the vDSO reads no counter that this program can read",
    /// This is not Linux: std's clock answers.
    Unsupported: "there is no Linux kernel, and Rust's standard library answers",
    /// The kernel keeps its time by another clock source: see its `current_clocksource`.
    ClockSource: "the kernel does not keep its time by the counter",
    /// The file that names the kernel's clock source cannot be read: there is no /sys, or a sandbox
    /// denies it. The clock tries again after a second.
    Unknown: "the name of the kernel's clock source cannot be read",
    /// The counter's rate depends on the CPU's (CPUID 0x80000007: not invariant).
    NotInvariant: "the counter's rate depends on the CPU's",
    /// The calling thread must not read the counter (prctl(2), `PR_SET_TSC`), and its vDSO does not
    /// read it either. The clock tries again after a second.
    Denied: "this thread must not read the counter",
    /// The counter's rate is impossible, changes, or is not the one that the hardware states (CPUID
    /// 0x15, `CNTFRQ`). The cause can be CPUs whose counters differ.
    Frequency: "the counter's rate is not the one that the hardware states",
    /// The counters of two CPUs differ by more than a correction can be.
    CpusDisagree: "the counters of two CPUs differ",
}

impl Status {
    /// The status whose `as u8` is this.
    pub(super) fn from_code(code: u8) -> Self {
        Self::ALL.get(usize::from(code)).copied().unwrap_or(Self::Unknown)
    }

    /// Whether the reason may vanish: a thread's right, or a file that could not be opened.
    pub(super) const fn is_temporary(self) -> bool {
        matches!(self, Self::Unknown | Self::Denied)
    }
}

/// The error of [`check`](super::check).
impl core::error::Error for Status {}
