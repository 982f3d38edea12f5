//! Conversions between [`Instant`] and `std::time::Instant`.
//!
//! std's type is `CLOCK_MONOTONIC` too (see "Underlying System calls" in its documentation), but
//! opaque. The first conversion reads both clocks side by side and keeps the pair. Each conversion
//! adds a difference to one of the two.

use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant as StdInstant;

use super::Instant;
use crate::errno::Errno;

/// The times of both clocks at one moment.
struct Moment {
    ours: Instant,
    std: StdInstant,
    /// How long it took to read both clocks.
    width: Duration,
}

/// Stays valid in a forked child, because both clocks advance equally.
static MOMENT: OnceLock<Moment> = OnceLock::new();

/// The number of reads. The shortest one counts, because a signal or another thread can delay a
/// read.
const READS: usize = 16;

impl Moment {
    fn get() -> Result<&'static Self, Errno> {
        match MOMENT.get() {
            Some(moment) => Ok(moment),
            None => Self::shortest().map(|moment| MOMENT.get_or_init(|| moment)),
        }
    }

    #[cold]
    fn shortest() -> Result<Self, Errno> {
        let width =
            |moment: &Result<Self, Errno>| moment.as_ref().map_or(Duration::MAX, |moment| moment.width);
        (0..READS).map(|_| Self::read()).min_by_key(width).unwrap_or_else(Self::read)
    }

    fn read() -> Result<Self, Errno> {
        let before = Instant::try_now()?;
        let std = StdInstant::now();
        let width = Instant::try_now()?.duration_since(before);
        Ok(Self { ours: before + width / 2, std, width })
    }
}

/// Requires the feature `std`.
impl TryFrom<Instant> for StdInstant {
    type Error = Errno;

    /// Converts a time, for an interface that takes `std::time::Instant`.
    ///
    /// All results of a process are off by the same offset: at most half of the time that the first
    /// conversion took to read both clocks, tens of nanoseconds in user space. Order and
    /// differences are exact, and converting back gives the same time. The result is meaningless if
    /// a library replaces std's clock (libfaketime).
    ///
    /// The first conversion takes a lock. Do not make it in a signal handler or in the forked child
    /// of a program with threads.
    ///
    /// # Errors
    ///
    /// - The sandbox's error, if it denies every way to read the clock at the first conversion.
    /// - `EOVERFLOW`: std's type cannot hold the time. On Linux it holds every time.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::Instant;
    ///
    /// let start = Instant::now();
    /// let for_std = std::time::Instant::try_from(start)?;
    /// assert_eq!(Instant::try_from(for_std)?, start);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    fn try_from(time: Instant) -> Result<Self, Errno> {
        let moment = Moment::get()?;
        let std = match time.checked_duration_since(moment.ours) {
            Some(later) => moment.std.checked_add(later),
            None => moment.std.checked_sub(moment.ours.duration_since(time)),
        };
        std.ok_or(Errno::EOVERFLOW)
    }
}

/// Requires the feature `std`.
impl TryFrom<StdInstant> for Instant {
    type Error = Errno;

    /// Converts a time of std's clock.
    ///
    /// The accuracy is that of the other direction, `std::time::Instant::try_from`.
    ///
    /// # Errors
    ///
    /// - The sandbox's error, if it denies every way to read the clock at the first conversion.
    /// - `EOVERFLOW`: the time is more than 292 years before or after boot.
    fn try_from(time: StdInstant) -> Result<Self, Errno> {
        let moment = Moment::get()?;
        let ours = match time.checked_duration_since(moment.std) {
            Some(later) => moment.ours.checked_add(later),
            None => moment.ours.checked_sub(moment.std.saturating_duration_since(time)),
        };
        ours.ok_or(Errno::EOVERFLOW)
    }
}
