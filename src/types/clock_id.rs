//! The number of a clock.

use core::fmt;
#[cfg(all(feature = "std", any(target_os = "linux", target_os = "android")))]
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// The number of a clock: `clockid_t` of clock_gettime(2).
///
/// Any number may be asked for. The kernel answers `EINVAL` to one that it does not know. The
/// numbers of the constants are those of include/uapi/linux/time.h.
///
/// # Examples
///
/// ```
/// use vdso_time::{ClockId, clock_gettime};
///
/// let uptime = clock_gettime(ClockId::BOOTTIME)?;
/// assert!(uptime.tv_sec >= 0);
/// assert_eq!(ClockId::BOOTTIME.to_string(), "CLOCK_BOOTTIME");
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ClockId(i32);

impl ClockId {
    /// Wall-clock time since the Epoch: set by people and by NTP, so it can step either way.
    #[doc(alias = "CLOCK_REALTIME")]
    pub const REALTIME: Self = Self(0);
    /// Time since an unspecified point, slewed by NTP, never set; it does not count suspended time.
    #[doc(alias = "CLOCK_MONOTONIC")]
    pub const MONOTONIC: Self = Self(1);
    /// CPU time used by all threads of this process (a system call).
    #[doc(alias = "CLOCK_PROCESS_CPUTIME_ID")]
    pub const PROCESS_CPUTIME: Self = Self(2);
    /// CPU time used by this thread (a system call).
    #[doc(alias = "CLOCK_THREAD_CPUTIME_ID")]
    pub const THREAD_CPUTIME: Self = Self(3);
    /// Like `MONOTONIC`, but not slewed by NTP.
    #[doc(alias = "CLOCK_MONOTONIC_RAW")]
    pub const MONOTONIC_RAW: Self = Self(4);
    /// `REALTIME` as of the last timer tick, 1 to 10 ms ago: no counter is read.
    #[doc(alias = "CLOCK_REALTIME_COARSE")]
    pub const REALTIME_COARSE: Self = Self(5);
    /// `MONOTONIC` as of the last timer tick, 1 to 10 ms ago: no counter is read.
    #[doc(alias = "CLOCK_MONOTONIC_COARSE")]
    pub const MONOTONIC_COARSE: Self = Self(6);
    /// Like `MONOTONIC`, and it counts suspended time.
    #[doc(alias = "CLOCK_BOOTTIME")]
    pub const BOOTTIME: Self = Self(7);
    /// `REALTIME`, for timers that wake a suspended system (a system call).
    #[doc(alias = "CLOCK_REALTIME_ALARM")]
    pub const REALTIME_ALARM: Self = Self(8);
    /// `BOOTTIME`, for timers that wake a suspended system (a system call).
    #[doc(alias = "CLOCK_BOOTTIME_ALARM")]
    pub const BOOTTIME_ALARM: Self = Self(9);
    /// International Atomic Time: wall-clock time without leap seconds, if NTP has told the kernel
    /// the offset.
    #[doc(alias = "CLOCK_TAI")]
    pub const TAI: Self = Self(11);

    /// Auxiliary clock `n`, 0 to 7 (since Linux 6.17, where `CONFIG_POSIX_AUX_CLOCKS` is set). A
    /// larger `n` names no clock, and the kernel says `EINVAL`.
    ///
    /// ```
    /// assert_eq!(vdso_time::ClockId::aux(0).as_raw(), 16);
    /// ```
    #[doc(alias = "CLOCK_AUX")]
    #[must_use]
    pub const fn aux(n: u8) -> Self {
        Self(16 + n as i32)
    }

    /// The CPU-time clock of process `pid`, as clock_getcpuclockid(3) gives it; 0 is this process.
    /// A negative `pid` names some other clock, or none, as in the kernel's own macro.
    ///
    /// ```
    /// use vdso_time::{ClockId, clock_gettime};
    ///
    /// let used = clock_gettime(ClockId::process_cpu(std::process::id() as i32))?;
    /// assert!(used.tv_sec >= 0);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    #[must_use]
    pub const fn process_cpu(pid: i32) -> Self {
        Self((!pid << 3) | CPUCLOCK_SCHED)
    }

    /// The CPU-time clock of thread `tid` of this process, as pthread_getcpuclockid(3) gives it; 0
    /// is this thread.
    ///
    /// ```
    /// use vdso_time::{ClockId, clock_gettime};
    ///
    /// assert!(clock_gettime(ClockId::thread_cpu(0))?.tv_sec >= 0);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    #[must_use]
    pub const fn thread_cpu(tid: i32) -> Self {
        Self((!tid << 3) | CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED)
    }

    /// Returns the clock of an open file, such as a PTP hardware clock (`/dev/ptp0`):
    /// `FD_TO_CLOCKID` of clock_getres(2).
    ///
    /// A negative `fd` names some other clock, or none. With the feature `std`, a
    /// `std::os::fd::BorrowedFd` converts by `ClockId::from`.
    ///
    /// ```
    /// assert_eq!(vdso_time::ClockId::from_fd(3).as_raw(), -29);
    /// ```
    #[doc(alias = "FD_TO_CLOCKID")]
    #[must_use]
    pub const fn from_fd(fd: i32) -> Self {
        Self((!fd << 3) | CLOCKFD)
    }

    /// The clock of this number.
    ///
    /// ```
    /// use vdso_time::ClockId;
    ///
    /// assert_eq!(ClockId::from_raw(1), ClockId::MONOTONIC);
    /// ```
    #[must_use]
    pub const fn from_raw(id: i32) -> Self {
        Self(id)
    }

    /// The number of this clock.
    ///
    /// ```
    /// assert_eq!(vdso_time::ClockId::TAI.as_raw(), 11);
    /// ```
    #[must_use]
    pub const fn as_raw(self) -> i32 {
        self.0
    }
}

// A negative id: 29 bits of a complemented pid, tid or file descriptor, then what they mean
// (include/linux/posix-timers_types.h).
const CPUCLOCK_SCHED: i32 = 2;
const CLOCKFD: i32 = 3;
const CPUCLOCK_PERTHREAD: i32 = 4;

const CLOCK_NAMES: &[(ClockId, &str)] = &[
    (ClockId::REALTIME, "CLOCK_REALTIME"),
    (ClockId::MONOTONIC, "CLOCK_MONOTONIC"),
    (ClockId::PROCESS_CPUTIME, "CLOCK_PROCESS_CPUTIME_ID"),
    (ClockId::THREAD_CPUTIME, "CLOCK_THREAD_CPUTIME_ID"),
    (ClockId::MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"),
    (ClockId::REALTIME_COARSE, "CLOCK_REALTIME_COARSE"),
    (ClockId::MONOTONIC_COARSE, "CLOCK_MONOTONIC_COARSE"),
    (ClockId::BOOTTIME, "CLOCK_BOOTTIME"),
    (ClockId::REALTIME_ALARM, "CLOCK_REALTIME_ALARM"),
    (ClockId::BOOTTIME_ALARM, "CLOCK_BOOTTIME_ALARM"),
    (ClockId::TAI, "CLOCK_TAI"),
];

impl fmt::Debug for ClockId {
    /// Writes what [`Display`](fmt::Display) does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ClockId {
    /// Writes the constant's name, `CLOCK_MONOTONIC`, or how the number is made: `process_cpu(1)`,
    /// `ClockId(99)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, name)) = CLOCK_NAMES.iter().find(|(clock, _)| clock == self) {
            return f.pad(name);
        }
        let id = self.0;
        match id & 7 {
            _ if (16..24).contains(&id) => write!(f, "CLOCK_AUX{}", id - 16),
            CPUCLOCK_SCHED if id < 0 => write!(f, "process_cpu({})", !(id >> 3)),
            CLOCKFD if id < 0 => write!(f, "from_fd({})", !(id >> 3)),
            6 if id < 0 => write!(f, "thread_cpu({})", !(id >> 3)),
            _ => write!(f, "ClockId({id})"),
        }
    }
}

/// The clock of an open file, as [`ClockId::from_fd`] makes it. Needs the feature `std`.
#[cfg(all(feature = "std", any(target_os = "linux", target_os = "android")))]
impl From<BorrowedFd<'_>> for ClockId {
    /// Converts the number of the file.
    ///
    /// The file must stay open as long as the clock is read. The number does not keep it open, and
    /// may be another file's after it was closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::fd::AsFd;
    /// use vdso_time::{ClockId, Errno, clock_gettime};
    ///
    /// let not_a_clock = std::fs::File::open("/dev/null")?;
    /// let clock = ClockId::from(not_a_clock.as_fd());
    /// assert_eq!(clock_gettime(clock), Err(Errno::EINVAL));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn from(fd: BorrowedFd<'_>) -> Self {
        Self::from_fd(fd.as_raw_fd())
    }
}
