//! The kernel's plain data: clock ids, times, CPUs. The layouts are include/uapi/linux/time_types.h's.

use core::fmt;

/// A clock: `clockid_t` of clock_gettime(2). Any number may be asked for; the kernel says `EINVAL` to one
/// that it does not know.
///
/// ```
/// use vdso_time::{ClockId, clock_gettime};
///
/// let uptime = clock_gettime(ClockId::BOOTTIME)?;
/// assert!(uptime.tv_sec >= 0);
/// assert_eq!(format!("{:?}", ClockId::BOOTTIME), "CLOCK_BOOTTIME");
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
    /// International Atomic Time: wall-clock time without leap seconds, if NTP has told the kernel the offset.
    #[doc(alias = "CLOCK_TAI")]
    pub const TAI: Self = Self(11);

    /// Auxiliary clock `n`, 0 to 7 (since Linux 6.17, where `CONFIG_POSIX_AUX_CLOCKS` is set). A larger `n`
    /// names no clock, and the kernel says `EINVAL`.
    ///
    /// ```
    /// assert_eq!(vdso_time::ClockId::aux(0).as_raw(), 16);
    /// ```
    #[doc(alias = "CLOCK_AUX")]
    #[must_use]
    pub const fn aux(n: u8) -> Self {
        Self(16 + n as i32)
    }

    /// The CPU-time clock of process `pid`, as clock_getcpuclockid(3) gives it; 0 is this process. A negative
    /// `pid` names some other clock, or none, as in the kernel's own macro.
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

    /// The CPU-time clock of thread `tid` of this process, as pthread_getcpuclockid(3) gives it; 0 is this thread.
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

    /// The clock behind an open file, a PTP hardware clock (`/dev/ptp0`) for one: `FD_TO_CLOCKID` of
    /// clock_getres(2). A negative `fd` names some other clock, or none.
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

/// `struct __kernel_timespec`: a time in seconds and nanoseconds, 64 bits each on every architecture.
///
/// ```
/// use vdso_time::{ClockId, clock_gettime};
///
/// let now = clock_gettime(ClockId::REALTIME)?;
/// println!("{}.{:09} s since the Epoch", now.tv_sec, now.tv_nsec);
/// assert!((0..1_000_000_000).contains(&now.tv_nsec));
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Timespec {
    /// Seconds.
    pub tv_sec: i64,
    /// Nanoseconds, `0..1_000_000_000`.
    pub tv_nsec: i64,
}

impl Timespec {
    /// The time in nanoseconds, which fit from the year 1677 until 2262; beyond, it is the first or the last that fits, to the
    /// second.
    ///
    /// ```
    /// use vdso_time::Timespec;
    ///
    /// assert_eq!(Timespec { tv_sec: 2, tv_nsec: 5 }.as_nanos(), 2_000_000_005);
    /// ```
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.tv_sec.saturating_mul(NANOS_PER_SEC).saturating_add(self.tv_nsec)
    }

    /// The same for a time that the kernel made: it keeps its clocks in 64 bits of nanoseconds itself (`ktime_t`),
    /// so nothing saturates, and nothing need be tested.
    #[inline]
    pub(crate) const fn ktime(self) -> i64 {
        self.tv_sec.wrapping_mul(NANOS_PER_SEC).wrapping_add(self.tv_nsec)
    }
}

/// A time in seconds and microseconds, 64 bits each on every architecture.
///
/// ```
/// let now = vdso_time::gettimeofday()?;
/// println!("{}.{:06} s since the Epoch", now.tv_sec, now.tv_usec);
/// assert!((0..1_000_000).contains(&now.tv_usec));
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Timeval {
    /// Seconds.
    pub tv_sec: i64,
    /// Microseconds, `0..1_000_000`.
    pub tv_usec: i64,
}

/// Where a thread ran when it asked: getcpu(2). It may have moved since.
///
/// ```
/// let here = vdso_time::getcpu()?;
/// println!("CPU {} of NUMA node {}", here.cpu, here.node);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Cpu {
    /// The CPU's number.
    pub cpu: u32,
    /// The number of the CPU's NUMA node.
    pub node: u32,
}

/// `struct old_timespec32`: what a 32-bit architecture's first clock calls write; it ends in January 2038.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Timespec32 {
    pub(crate) tv_sec: i32,
    pub(crate) tv_nsec: i32,
}

/// `struct old_timeval32`: what a 32-bit architecture's gettimeofday writes; it ends in January 2038.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Timeval32 {
    pub(crate) tv_sec: i32,
    pub(crate) tv_usec: i32,
}

/// Nanoseconds in a second.
pub(crate) const NANOS_PER_SEC: i64 = 1_000_000_000;

impl From<Timespec32> for Timespec {
    fn from(time: Timespec32) -> Self {
        Self { tv_sec: time.tv_sec.into(), tv_nsec: time.tv_nsec.into() }
    }
}

impl From<Timeval> for Timespec {
    fn from(time: Timeval) -> Self {
        Self { tv_sec: time.tv_sec, tv_nsec: time.tv_usec.wrapping_mul(1000) }
    }
}

impl From<Timeval32> for Timespec {
    fn from(time: Timeval32) -> Self {
        Self { tv_sec: time.tv_sec.into(), tv_nsec: i64::from(time.tv_usec) * 1000 }
    }
}

impl From<Timespec> for Timeval {
    fn from(time: Timespec) -> Self {
        // Nanoseconds of a second fit in 32 bits, which a 32-bit machine divides without the help of a function.
        let tv_usec = match u32::try_from(time.tv_nsec) {
            Ok(nanos) if cfg!(target_pointer_width = "32") => i64::from(nanos / 1000),
            _ => time.tv_nsec / 1000,
        };
        Self { tv_sec: time.tv_sec, tv_usec }
    }
}
