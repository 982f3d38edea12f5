//! [`Status`]: whether the counter is used, or why not.

use core::fmt;

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
    /// Not yet: the first reads measure the counter's rate, which takes 10 ms; by reads more than a second apart it is never
    /// measured. Or again: the counter and the kernel's clock went apart (the system was suspended, the virtual machine moved
    /// or restored), and it is measured anew.
    Calibrating,
    /// The last read is longer ago than the line was made for. The next one goes to the vDSO and makes a new line.
    Stale,
    /// As [`Stale`](Self::Stale), and the claim to make a new line is held. If it stays so, a fork lost it: the process was
    /// forked while another thread held it. The vDSO answers then for the life of the process.
    Claimed,
    /// There is no counter that this crate reads, or the vDSO does not read it, or the program is for CPUs without 64-bit atomics
    /// (ARMv5 and before).
    NoCounter,
    /// The kernel does not keep the time by the counter: its `current_clocksource` is another.
    ClockSource,
    /// What the kernel keeps the time by cannot be read (no /sys, or a sandbox denies it). It is asked again after a second.
    Unknown,
    /// The counter's rate depends on the CPU's (CPUID 0x80000007: not invariant).
    NotInvariant,
    /// The thread that asked must not read the counter (prctl(2), `PR_SET_TSC`), and its vDSO did not: otherwise it got SIGSEGV.
    Denied,
    /// The counter's rate is not the one that the hardware states (CPUID 0x15, `CNTFRQ`), or not one that a counter has, or it was not the
    /// same twice, as where the counters of two CPUs differ.
    Frequency,
    /// The counters of two CPUs differ by more than a correction may be.
    CpusDisagree,
}

impl Status {
    /// Whether it is what one thread was refused, or could not open just then: so it is asked again.
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
