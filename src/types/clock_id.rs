//! [`ClockId`]: the number of a clock.

use core::fmt;
use core::str::FromStr;
#[cfg(all(feature = "std", vdso_time_linux))]
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// The number of a clock: `clockid_t` of clock_gettime(2).
///
/// Every number is allowed. The kernel answers `EINVAL` if it does not know the clock. The
/// constants are from include/uapi/linux/time.h. [`from_raw`](Self::from_raw) converts libc's
/// constants: `ClockId::from_raw(libc::CLOCK_MONOTONIC)`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ClockId(i32);

/// Defines the constants, and the table of their names.
macro_rules! clocks {
    ($($(#[$doc:meta])+ $NAME:ident = $id:literal, $name:literal;)+) => {
        impl ClockId {
            $($(#[$doc])+ #[doc(alias = $name)] pub const $NAME: Self = Self($id);)+
        }

        const CLOCK_NAMES: &[(ClockId, &str)] = &[$((ClockId::$NAME, $name)),+];
    };
}

clocks! {
    /// Wall-clock time since the Epoch. NTP slews it, and it can be set, so it can step.
    REALTIME = 0, "CLOCK_REALTIME";
    /// Time since boot or, in a time namespace, since another moment. NTP slews it. It is never
    /// set, and does not count suspended time.
    MONOTONIC = 1, "CLOCK_MONOTONIC";
    /// CPU time used by all threads of this process. A read is a system call.
    PROCESS_CPUTIME = 2, "CLOCK_PROCESS_CPUTIME_ID";
    /// CPU time used by this thread. A read is a system call.
    THREAD_CPUTIME = 3, "CLOCK_THREAD_CPUTIME_ID";
    /// Like `MONOTONIC`, but not slewed by NTP.
    MONOTONIC_RAW = 4, "CLOCK_MONOTONIC_RAW";
    /// `REALTIME` at the last timer tick, usually at most 10 ms ago. A read does not need the CPU's
    /// counter.
    REALTIME_COARSE = 5, "CLOCK_REALTIME_COARSE";
    /// `MONOTONIC` at the last timer tick, usually at most 10 ms ago. A read does not need the
    /// CPU's counter.
    MONOTONIC_COARSE = 6, "CLOCK_MONOTONIC_COARSE";
    /// `MONOTONIC`, plus the time during which the system was suspended.
    BOOTTIME = 7, "CLOCK_BOOTTIME";
    /// `REALTIME`, for timers that wake a suspended system. A read is a system call.
    REALTIME_ALARM = 8, "CLOCK_REALTIME_ALARM";
    /// `BOOTTIME`, for timers that wake a suspended system. A read is a system call.
    BOOTTIME_ALARM = 9, "CLOCK_BOOTTIME_ALARM";
    /// International Atomic Time, which counts leap seconds. Linux has had this clock since version
    /// 3.10. It equals `REALTIME` until NTP sets the offset between the two.
    TAI = 11, "CLOCK_TAI";
}

impl ClockId {
    /// Returns auxiliary clock `n`, 0 to 7.
    ///
    /// Linux has had auxiliary clocks since version 6.17, if it is built with
    /// `CONFIG_POSIX_AUX_CLOCKS`. If `n` is larger than 7, no such clock exists, and the kernel
    /// answers `EINVAL`.
    #[doc(alias = "CLOCK_AUX")]
    #[must_use]
    pub const fn aux(n: u8) -> Self {
        Self(16 + n as i32)
    }

    /// Returns the CPU-time clock of process `pid`, as clock_getcpuclockid(3) does; 0 is this
    /// process.
    ///
    /// For a number that is too large for a process (2^28 or more), the result is
    /// `from_raw(i32::MAX)`, a clock that no kernel has, so a read fails with `EINVAL`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{ClockId, Errno, clock_gettime};
    ///
    /// let clock = ClockId::process_cpu(std::process::id());
    /// println!("{} s of CPU time", clock_gettime(clock)?);
    /// assert_eq!(clock_gettime(ClockId::process_cpu(u32::MAX)), Err(Errno::EINVAL));
    /// # Ok::<(), Errno>(())
    /// ```
    ///
    /// The parameter is unsigned, unlike libc's `pid_t`, because a negative number is not a
    /// process:
    ///
    /// ```compile_fail,E0308
    /// let pid: i32 = -1; // libc::fork() failed
    /// let clock = vdso_time::ClockId::process_cpu(pid);
    /// ```
    #[must_use]
    pub const fn process_cpu(pid: u32) -> Self {
        Self::dynamic(pid, CPUCLOCK_SCHED)
    }

    /// Returns the CPU-time clock of thread `tid` of this process, as pthread_getcpuclockid(3)
    /// does; 0 is this thread.
    ///
    /// For a number that is too large for a thread, the result is `from_raw(i32::MAX)`, as in
    /// [`process_cpu`](Self::process_cpu).
    #[must_use]
    pub const fn thread_cpu(tid: u32) -> Self {
        Self::dynamic(tid, CPUCLOCK_THREAD)
    }

    /// Returns the clock of an open file, such as a PTP hardware clock (`/dev/ptp0`):
    /// `FD_TO_CLOCKID` of clock_getres(2).
    ///
    /// If `fd` is negative, such as the -1 of an open(2) that failed, or is at least 2^28, the
    /// result is `from_raw(i32::MAX)`. No kernel has this clock, so a read fails with `EINVAL`.
    /// With the feature `std`, `ClockId::from` converts a `std::os::fd::BorrowedFd`.
    ///
    /// std's I/O safety asks for an owned or a borrowed descriptor. This function is safe with any
    /// number nevertheless, because a `ClockId` is only a number, as in C. If the file is not the
    /// caller's, the worst that a read of the clock can do is return that file's time.
    #[doc(alias = "FD_TO_CLOCKID")]
    #[must_use]
    pub const fn from_fd(fd: i32) -> Self {
        // A negative number becomes a large one.
        Self::dynamic(fd as u32, CLOCKFD)
    }

    /// Returns the id of the clock with this number and kind. If the number is too large, returns
    /// an id that no kernel has.
    ///
    /// The id has 29 bits for the complement of the number. The complement of a number below 2^28
    /// has its highest bit set, so the id is negative. A larger number would be truncated, and
    /// would name another process, thread or clock.
    const fn dynamic(number: u32, kind: i32) -> Self {
        if number >= 1 << 28 {
            return Self(i32::MAX);
        }
        Self((!(number as i32) << 3) | kind)
    }

    /// Returns the clock with this number.
    #[must_use]
    pub const fn from_raw(id: i32) -> Self {
        Self(id)
    }

    /// Returns the number of this clock.
    #[must_use]
    pub const fn as_raw(self) -> i32 {
        self.0
    }
}

// A negative id has the complement of a pid, a tid or a file descriptor in its upper 29 bits, and
// these flags in the lower 3 (include/linux/posix-timers_types.h).
const CPUCLOCK_SCHED: i32 = 2;
const CLOCKFD: i32 = 3;
/// `CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED`.
const CPUCLOCK_THREAD: i32 = 4 | CPUCLOCK_SCHED;

impl fmt::Debug for ClockId {
    /// Writes what `Display` writes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ClockId {
    /// Writes the kernel's name of the clock, or the call that returns it: `CLOCK_MONOTONIC`,
    /// `process_cpu(1)`, `ClockId(99)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, name)) = CLOCK_NAMES.iter().find(|(clock, _)| clock == self) {
            return f.pad(name);
        }
        let id = self.0;
        match id & 7 {
            _ if (16..24).contains(&id) => write!(f, "CLOCK_AUX{}", id - 16),
            CPUCLOCK_SCHED if id < 0 => write!(f, "process_cpu({})", !(id >> 3)),
            CLOCKFD if id < 0 => write!(f, "from_fd({})", !(id >> 3)),
            CPUCLOCK_THREAD if id < 0 => write!(f, "thread_cpu({})", !(id >> 3)),
            _ => write!(f, "ClockId({id})"),
        }
    }
}

impl FromStr for ClockId {
    type Err = ParseClockIdError;

    /// Returns the clock with this name, such as `CLOCK_BOOTTIME` or `CLOCK_AUX3`.
    ///
    /// # Errors
    ///
    /// If the text is not one of the names with the prefix `CLOCK_` that `Display` writes.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::ClockId;
    ///
    /// assert_eq!("CLOCK_TAI".parse(), Ok(ClockId::TAI));
    /// assert_eq!(ClockId::TAI.to_string(), "CLOCK_TAI");
    /// assert!("CLOCK_SGI_CYCLE".parse::<ClockId>().is_err());
    /// ```
    fn from_str(name: &str) -> Result<Self, ParseClockIdError> {
        if let Some((clock, _)) = CLOCK_NAMES.iter().find(|(_, known)| *known == name) {
            return Ok(*clock);
        }
        match name.strip_prefix("CLOCK_AUX").map(str::as_bytes) {
            Some([n @ b'0'..=b'7']) => Ok(Self::aux(n - b'0')),
            _ => Err(ParseClockIdError(())),
        }
    }
}

/// The error of [`ClockId::from_str`]: no clock has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseClockIdError(());

impl fmt::Display for ParseClockIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no clock has this name (clock_gettime(2) lists the names, such as CLOCK_MONOTONIC)",
        )
    }
}

impl core::error::Error for ParseClockIdError {}

/// Requires the feature `std`.
#[cfg(all(feature = "std", vdso_time_linux))]
impl From<BorrowedFd<'_>> for ClockId {
    /// Returns the clock of an open file, as [`ClockId::from_fd`] does.
    ///
    /// Keep the file open while you read the clock, because a `ClockId` does not keep it open.
    /// After the file is closed, its descriptor's number can belong to another file.
    fn from(fd: BorrowedFd<'_>) -> Self {
        Self::from_fd(fd.as_raw_fd())
    }
}
