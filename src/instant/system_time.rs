//! [`SystemTime`]: a time of a wall clock.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use super::point::point_in_time;
use super::{Realtime, WallClock};

/// A time of a clock that can be set, by default [`Realtime`].
///
/// It has the methods of `std::time::SystemTime`, with the same receivers. It takes 8 bytes.
/// Operators saturate. Only `now` and `elapsed` panic, if a sandbox denies every way to read the
/// clock.
///
/// # Examples
///
/// ```
/// use vdso_time::SystemTime;
///
/// let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
/// assert!(since_epoch.as_secs() > 1_700_000_000);
/// # Ok::<(), vdso_time::SystemTimeError>(())
/// ```
///
/// Times of different clocks cannot be mixed:
///
/// ```compile_fail,E0308
/// use vdso_time::{SystemTime, Tai, WallClock};
///
/// let mixed = SystemTime::now().duration_since(Tai::now());
/// ```
pub struct SystemTime<C = Realtime> {
    nanos: i64,
    clock: PhantomData<fn() -> C>,
}

/// The zero of `CLOCK_REALTIME`, as [`SystemTime::UNIX_EPOCH`]: 1970-01-01 00:00:00 UTC.
pub const UNIX_EPOCH: SystemTime = SystemTime::UNIX_EPOCH;

point_in_time!(SystemTime, Realtime, "CLOCK_REALTIME");

impl SystemTime {
    /// The clock's zero: 1970-01-01 00:00:00 UTC.
    ///
    /// Other wall clocks have their own: [`WallClock::UNIX_EPOCH`].
    pub const UNIX_EPOCH: Self = <Realtime as WallClock>::UNIX_EPOCH;
}

impl<C: WallClock> SystemTime<C> {
    /// Returns the duration since this time.
    ///
    /// # Errors
    ///
    /// If this time is in the future, which happens if the clock was set back. The error has the
    /// distance.
    ///
    /// # Panics
    ///
    /// If the clock cannot be read, as [`WallClock::now`]. `C::try_now()?.duration_since(start)`
    /// returns the error instead.
    ///
    /// # Examples
    ///
    /// ```
    /// let start = vdso_time::SystemTime::now();
    /// match start.elapsed() {
    ///     Ok(elapsed) => println!("{elapsed:?}"),
    ///     Err(error) => println!("set back by {:?}", error.duration()),
    /// }
    /// ```
    #[inline]
    #[track_caller]
    pub fn elapsed(&self) -> Result<Duration, SystemTimeError> {
        C::now().duration_since(*self)
    }
}

impl<C> SystemTime<C> {
    /// Returns the duration since `earlier`.
    ///
    /// # Errors
    ///
    /// If `earlier` is later. The error has the distance.
    #[inline]
    pub fn duration_since(&self, earlier: Self) -> Result<Duration, SystemTimeError> {
        let later = || SystemTimeError(earlier.saturating_duration_since(*self));
        self.checked_duration_since(earlier).ok_or_else(later)
    }
}

/// The error of [`SystemTime::duration_since`]: the other time is later.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use vdso_time::SystemTime;
///
/// let now = SystemTime::now();
/// let error = now.duration_since(now + Duration::from_secs(3)).unwrap_err();
/// assert_eq!(error.duration(), Duration::from_secs(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SystemTimeError(pub(super) Duration);

impl SystemTimeError {
    /// Returns how much later the other time is.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.0
    }
}

impl fmt::Display for SystemTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the other time is {:?} later", self.0)
    }
}

impl core::error::Error for SystemTimeError {}
