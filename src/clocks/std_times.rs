//! Conversions between [`Instant`], [`SystemTime`] and std's types of the same names.
//!
//! On Linux, std's `Instant` is a time of `CLOCK_MONOTONIC` as well (see "Underlying System calls"
//! in its documentation), but it has no method that returns this time as a number. So the
//! first conversion reads the clock twice in a row, through this crate and through std, and keeps
//! this pair of times. Each conversion computes how far its argument is from the time of the same
//! type in the pair, and adds the difference to the time of the other type.

use core::time::Duration;
use std::sync::OnceLock;
use std::time::{Instant as StdInstant, SystemTime as StdSystemTime};

use super::monotonic::Instant;
use super::wall::SystemTime;
use crate::errno::Errno;

/// The times of both clocks at one moment.
struct Moment {
    ours: Instant,
    std: StdInstant,
    /// How long it took to read both clocks.
    width: Duration,
}

/// The pair of times that the first conversion read. The pair stays valid in a forked child,
/// because this crate's clock and std's clock advance at the same rate.
static MOMENT: OnceLock<Moment> = OnceLock::new();

/// The number of attempts to read both clocks. The fastest one counts, because a signal or another
/// thread can delay a read.
const READS: usize = 16;

impl Moment {
    /// Returns the pair of times in `MOMENT`. The first call reads the clocks. It does so before it
    /// calls `get_or_init` and not in the closure, because the message of a panic in the closure
    /// would not name the line of the user's code.
    #[track_caller]
    fn get() -> &'static Self {
        if let Some(moment) = MOMENT.get() {
            return moment;
        }
        let mut shortest = Self::read();
        for _ in 1..READS {
            let moment = Self::read();
            if moment.width < shortest.width {
                shortest = moment;
            }
        }
        MOMENT.get_or_init(|| shortest)
    }

    #[track_caller]
    fn read() -> Self {
        let before = Instant::now();
        let std = StdInstant::now();
        let width = before.elapsed();
        Self {
            ours: before + width / 2,
            std,
            width,
        }
    }
}

/// Requires the feature `std`.
impl From<Instant> for StdInstant {
    /// Converts a time, such as a deadline for a function that takes `std::time::Instant`.
    ///
    /// All results in a process have the same error. The first conversion makes 16 attempts to read
    /// both clocks, and the error is at most half of the time that the fastest attempt took. That
    /// is usually tens of nanoseconds, but microseconds were seen when other threads kept the
    /// machine busy. Because the error is always the same, order and differences are exact, and
    /// converting back gives the same time. The result is meaningless if a library such as
    /// libfaketime replaces the clock that std reads.
    ///
    /// On Linux, std's type can hold every time. On Windows, it cannot hold a time before boot.
    /// Such a time becomes the moment of the first conversion, so the result is still a time in the
    /// past.
    ///
    /// The first conversion takes a lock. Do not make it in a signal handler or in the forked child
    /// of a program with threads.
    ///
    /// # Panics
    ///
    /// If the clock cannot be read at the first conversion.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Duration, Instant};
    ///
    /// let deadline = Instant::now() + Duration::from_millis(1);
    /// std::thread::sleep(Duration::from_millis(2));
    /// let std = std::time::Instant::from(deadline);
    /// assert!(std < std::time::Instant::now());
    /// assert_eq!(Instant::try_from(std), Ok(deadline));
    /// ```
    #[track_caller]
    fn from(time: Instant) -> Self {
        let moment = Moment::get();
        let std = match time.checked_duration_since(moment.ours) {
            Some(later) => moment.std.checked_add(later),
            None => moment.std.checked_sub(moment.ours.duration_since(time)),
        };
        std.unwrap_or(moment.std)
    }
}

/// Requires the feature `std`.
impl TryFrom<StdInstant> for Instant {
    type Error = Errno;

    /// Converts a time of std's clock.
    ///
    /// The result is as accurate as in the other direction, `std::time::Instant::from`.
    ///
    /// # Errors
    ///
    /// `EOVERFLOW`: the time is more than 292 years before or after boot.
    ///
    /// # Panics
    ///
    /// If the clock cannot be read at the first conversion.
    #[track_caller]
    fn try_from(time: StdInstant) -> Result<Self, Errno> {
        let moment = Moment::get();
        let ours = match time.checked_duration_since(moment.std) {
            Some(later) => moment.ours.checked_add(later),
            None => moment
                .ours
                .checked_sub(moment.std.saturating_duration_since(time)),
        };
        ours.ok_or(Errno::EOVERFLOW)
    }
}

/// Requires the feature `std`.
impl From<SystemTime> for StdSystemTime {
    /// Converts a time.
    ///
    /// # Panics
    ///
    /// Never on Linux and other Unix systems. On other systems, if std's type cannot hold the time:
    /// on Windows a time before 1601 or after the year 30,000, on WASI a time before 1970.
    fn from(time: SystemTime) -> Self {
        let seconds = Duration::from_secs(time.as_secs().unsigned_abs());
        let second = if time.as_secs() < 0 {
            Self::UNIX_EPOCH - seconds
        } else {
            Self::UNIX_EPOCH + seconds
        };
        second + Duration::from_nanos(time.subsec_nanos().into())
    }
}

/// Requires the feature `std`.
impl From<StdSystemTime> for SystemTime {
    /// Converts a time, such as the modification time of a file.
    ///
    /// # Panics
    ///
    /// Never on Linux, other Unix systems and Windows. On other systems, if the time is more than
    /// [`i64::MAX`] seconds after 1970.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::SystemTime;
    ///
    /// let changed = std::fs::metadata("/proc/self/exe")?.modified()?;
    /// println!("{:?} ago", SystemTime::from(changed).elapsed());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn from(time: StdSystemTime) -> Self {
        match time.duration_since(StdSystemTime::UNIX_EPOCH) {
            Ok(after) => Self::UNIX_EPOCH + after,
            Err(before) => Self::UNIX_EPOCH - before.duration(),
        }
    }
}
