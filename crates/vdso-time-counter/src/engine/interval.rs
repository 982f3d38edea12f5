//! [`Interval`]: the limits of the true time, and [`ClockStatus`].

use core::fmt;

use vdso_time::SystemTime;

#[doc = include_str!("true_time.md")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Interval {
    /// The true time is not earlier.
    pub earliest: SystemTime,
    /// The true time is not later.
    pub latest: SystemTime,
    /// Whether a bound of the error is known.
    pub status: ClockStatus,
}

impl Interval {
    /// Makes an interval, for the tests of a program that compares them.
    ///
    /// ```
    /// use vdso_time::{Duration, UNIX_EPOCH};
    /// use vdso_time_counter::{ClockStatus, Interval};
    ///
    /// let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    /// let first = Interval::new(at(10), at(12), ClockStatus::Synchronized);
    /// let second = Interval::new(at(13), at(15), ClockStatus::Synchronized);
    /// assert!(first.is_before(&second));
    /// ```
    #[must_use]
    pub const fn new(earliest: SystemTime, latest: SystemTime, status: ClockStatus) -> Self {
        Self { earliest, latest, status }
    }

    /// Returns whether the true time of this interval was certainly earlier than the other one's.
    ///
    /// If neither is before the other, their order is unknown. An interval whose limits are the
    /// whole range is before none.
    #[must_use]
    pub fn is_before(&self, other: &Self) -> bool {
        self.latest < other.earliest
    }
}

/// What is known of the error of the wall clock. The values are those of ClockBound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ClockStatus {
    /// No bound of the error is known, so the limits are the whole range.
    ///
    /// No program has stated an error, or it states 0, or the stated one has grown to 16 s. Or a
    /// leap second is near, or the kernel corrects its clock by a pulse per second.
    Unknown = 0,
    /// The truth is within the limits, and the program marks the kernel's clock as synchronized.
    Synchronized = 1,
    /// The truth is within the limits, but the kernel's clock is marked as not synchronized
    /// (`STA_UNSYNC`): the program has stopped, or it is chronyd without `rtcsync`.
    FreeRunning = 2,
    /// The virtual machine was moved or restored, or the system was suspended, and no program has
    /// stated an error since. The limits are the whole range.
    ///
    /// A process that starts on a machine that was ever moved or restored waits for a statement.
    Disrupted = 3,
}

impl ClockStatus {
    /// Returns whether a bound of the error is known: `Synchronized` or `FreeRunning`.
    #[must_use]
    pub const fn is_bounded(self) -> bool {
        matches!(self, Self::Synchronized | Self::FreeRunning)
    }
}

impl fmt::Display for ClockStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no bound of the clock's error is known",
            Self::Synchronized => "the clock is synchronized, and its error has a bound",
            Self::FreeRunning => "the clock is not synchronized, but its error has a bound",
            Self::Disrupted => "no error was stated since the machine was moved, restored or suspended",
        })
    }
}
