//! [`State`]: whether the counter answers, and how well. [`Statistics`]: what the clock has done.

use core::fmt;
use core::time::Duration;

/// The state of the clock at one moment, from [`state`](crate::state).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct State {
    /// Whether the counter answers, or why the vDSO does. It can change when a segment ends.
    pub status: Status,
    /// How far a read of the monotonic clock can be from `CLOCK_MONOTONIC`, until the present
    /// segment ends: see [Error bound](crate#error-bound).
    ///
    /// While the vDSO answers, the bound is the lead of this clock: how far its time is ahead of
    /// the kernel's clock. This clock never goes back. If it has a lead, it returns the same time
    /// until the kernel's clock has caught up. The lead is usually 0. If a sandbox denies the
    /// clock, the bound is [`Duration::MAX`].
    pub error_bound: Duration,
    /// The number of [`Ticks`](crate::Ticks) per second: the mean since the counter was measured,
    /// or since adjtimex(2) changed the rate by more than NTP does. After a minute it is off by a
    /// few parts per billion. `None` while the counter is not used. Where `Ticks` are nanoseconds,
    /// it is 1,000,000,000.
    pub frequency: Option<u64>,
    /// The counts of what the clock has done so far.
    pub statistics: Statistics,
}

/// Whether the counter answers, or why the vDSO does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// The counter answers.
    Used,
    /// The counter's rate is being measured.
    ///
    /// A measurement takes 11 ms, and is made by the reads of the clock. If the reads are more than
    /// a second apart, no measurement is ever completed. The rate is measured again after a
    /// suspend, after a move or a restore of the virtual machine, and after setns(2).
    Calibrating,
    /// No read came in time to renew the segment. Of two reads within 1 ms, the second one makes
    /// the next segment.
    Stale,
    /// As [`Stale`](Self::Stale), but another caller is updating the clock.
    ///
    /// If this status persists, an [update was cut off](crate#where-the-clock-must-not-be-used),
    /// and the vDSO answers for the rest of the process's life.
    Updating,
    /// The counter is unavailable, at least for some time.
    Unavailable(Unavailable),
}

impl Status {
    /// Returns whether the counter answers.
    ///
    /// # Examples
    ///
    /// ```
    /// println!("a cheap clock: {}", vdso_time_counter::state().status.is_used());
    /// ```
    #[inline]
    #[must_use]
    pub const fn is_used(self) -> bool {
        matches!(self, Self::Used)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Used => "the counter answers",
            Self::Calibrating => "the vDSO answers while the counter's rate is measured",
            Self::Stale => "the vDSO answers until two reads come within 1 ms",
            Self::Updating => {
                "the vDSO answers while another caller updates the clock, \
                 or because an update was cut off"
            }
            Self::Unavailable(reason) => return reason.fmt(f),
        })
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])+ $Reason:ident: $text:literal,)+) => {
        /// Why the counter is not used.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Unavailable {
            $($(#[$doc])+ $Reason,)+
        }

        impl Unavailable {
            // `ALL` is public because the tests of the C library use it.
            #[doc(hidden)]
            pub const ALL: &[Self] = &[$(Self::$Reason),+];
        }

        impl fmt::Display for Unavailable {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$Reason => $text),+ })
            }
        }
    };
}

reasons! {
    /// The machine has no counter that this crate can read, or `clock_gettime` does not go through
    /// the vDSO, or the program is built for CPUs without 64-bit atomics (ARMv5 and older).
    NoCounter: "the vDSO reads no counter that this program can read",
    /// This is not Linux: std's clock answers.
    Unsupported: "this system is not Linux, so the clock of Rust's standard library answers",
    /// The kernel derives its time from a clock source other than the counter. The file
    /// `current_clocksource` in /sys names that source. The clock asks again after 10 s.
    ClockSource: "the kernel's clock source is not the counter",
    /// The name of the kernel's clock source cannot be read: /sys is not mounted, or a sandbox
    /// denies it. The clock tries again after a second.
    ClockSourceUnknown: "the name of the kernel's clock source cannot be read",
    /// The counter's rate depends on the CPU's frequency (CPUID 0x80000007: not invariant). Under
    /// `kvm-clock` it can still be used after [`trust_hypervisor`](crate::trust_hypervisor).
    NotInvariant: "the counter's rate depends on the CPU's frequency",
    /// The calling thread is not allowed to read the counter (prctl(2), `PR_SET_TSC`), so the vDSO
    /// answers. If the vDSO reads the counter as well, the thread gets SIGSEGV when it reads this
    /// clock, as it does when it calls the vDSO. The clock tries again after a second.
    Denied: "this thread is not allowed to read the counter",
    /// The counter's rate is impossible, changes, or is not the one that the hardware states (CPUID
    /// 0x15, `CNTFRQ`), in three measurements in a row. The clock tries again after 10 s, and after
    /// twice as long each time, up to 640 s.
    Frequency: "the counter's rate is not the one that the hardware states",
    /// A read costs as much as a system call, according to [`read_cost`](vdso_time::read_cost()):
    /// the vDSO enters the kernel (under `kvm-clock` without the stable bit, and on arm64 because
    /// of an erratum), or each read of the counter is trapped. The clock tries again after 10 s.
    SlowVdso: "a read through the vDSO takes about as long as a system call",
    /// The clock would have to ask the kernel, but
    /// [`prepare_for_sandbox`](crate::prepare_for_sandbox) forbade its system calls.
    SystemCallsForbidden: "the kernel's clock source is unknown, because system calls are forbidden",
}

impl core::error::Error for Unavailable {}

/// The counts of what the clock has done so far in this process, and in its parent before the fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Statistics {
    /// The number of segments that were made. It changes only in a read that makes a segment.
    pub segments: u64,
    /// The number of measurements of the counter's rate that were begun.
    pub calibrations: u64,
    /// How often the counter became unavailable. A check that confirms the same reason does not
    /// count.
    pub times_unavailable: u64,
    /// Why the counter last became unavailable.
    pub last_unavailable: Option<Unavailable>,
    /// How often the kernel's clock or the counter jumped while the counter was used: the system
    /// resumed, or its virtual machine was moved, restored or stopped.
    ///
    /// Only a read that makes a segment finds a jump. It compares how much time has passed since
    /// the last segment was made, according to the kernel's clock and according to the counter. A
    /// difference of more than 25 % of that time, plus 8 to 16 us, is a jump. If more than the time
    /// of two segments has passed (16 to 32 ms), a difference of more than 500 ppm, plus 8 to
    /// 16 us, is a jump as well. So if nothing reads the clock for that long, and a slew by
    /// adjtimex(2) begins or ends meanwhile, the slew can count as a jump.
    pub steps: u64,
    /// How often a read of the clock found that the offset between `CLOCK_REALTIME` and
    /// `CLOCK_MONOTONIC` changed: the wall clock was set, a leap second set it back, the machine
    /// was suspended, or the process entered a time namespace.
    pub wall_steps: u64,
    /// The approximate number of reads that the vDSO answered while the counter was available.
    pub vdso_reads: u64,
    /// The error of the clock when the last segment was made. That segment removes it, or a part of
    /// it.
    pub last_error: Duration,
    /// The largest value that `last_error` has had.
    ///
    /// Steps and slews make this value large. But a large value does not prove that a read was
    /// wrong: if an interrupt makes every sample of a burst late, the value is the error of the
    /// sample, not of the clock.
    pub largest_error: Duration,
}
