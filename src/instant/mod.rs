//! Times that know their clock. An [`Instant<Boottime>`](Boottime) and an [`Instant<Monotonic>`](Monotonic) cannot be
//! compared or subtracted: it does not compile. Each is one 64-bit count of nanoseconds, as the kernel keeps it (`ktime_t`),
//! which ends in 2262; arithmetic beyond that saturates, or says `None` where its name says `checked`.

mod clocks;
mod point;

use core::marker::PhantomData;
use core::time::Duration;

use crate::error::{Errno, SystemTimeError};
pub use clocks::{
    Boottime, Clock, Monotonic, MonotonicCoarse, MonotonicRaw, Realtime, RealtimeCoarse, Tai, WallClock,
};
use point::point_in_time;

/// A time of a clock that never goes back; [`Monotonic`] unless another one is named.
///
/// ```
/// use vdso_time::Instant;
///
/// let start = Instant::now();
/// println!("{:?}", start.elapsed());
/// ```
///
/// Another clock is read from its marker:
///
/// ```
/// use vdso_time::{Boottime, Clock};
///
/// let start = Boottime::now();
/// println!("{:?}, and suspended time counts", start.elapsed());
/// ```
///
/// Two clocks cannot be mixed up:
///
/// ```compile_fail,E0308
/// use vdso_time::{Boottime, Clock, Instant, Monotonic};
///
/// let monotonic: Instant<Monotonic> = Instant::now();
/// let mixed = Boottime::now() - monotonic;
/// ```
pub struct Instant<C = Monotonic> {
    nanos: i64,
    clock: PhantomData<fn() -> C>,
}

/// A time of a clock that people set; [`Realtime`] unless another one is named.
///
/// ```
/// use vdso_time::SystemTime;
///
/// let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
/// assert!(since_epoch.as_secs() > 1_700_000_000);
/// # Ok::<(), vdso_time::SystemTimeError>(())
/// ```
///
/// Two clocks cannot be mixed up:
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

point_in_time!(Instant);
point_in_time!(SystemTime);

impl Instant {
    /// The time of `CLOCK_MONOTONIC`.
    ///
    /// # Panics
    /// If a sandbox denies every way to read the clock.
    ///
    /// ```
    /// let start = vdso_time::Instant::now();
    /// ```
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn now() -> Self {
        Monotonic::now()
    }

    /// The time of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// If a sandbox denies every way to read the clock: what it answered.
    ///
    /// ```
    /// let start = vdso_time::Instant::try_now()?;
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    #[inline]
    pub fn try_now() -> Result<Self, Errno> {
        Monotonic::try_now()
    }
}

impl<C: Clock> Instant<C> {
    /// How long ago this was; 0 if it is yet to come.
    ///
    /// # Panics
    /// As [`Clock::now`].
    ///
    /// ```
    /// let start = vdso_time::Instant::now();
    /// assert!(start.elapsed().as_secs() < 3600);
    /// ```
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn elapsed(self) -> Duration {
        C::now().duration_since(self)
    }
}

impl<C> Instant<C> {
    /// How much later this is than `earlier`; 0 if it is not.
    ///
    /// ```
    /// use core::time::Duration;
    /// use vdso_time::Instant;
    ///
    /// let now = Instant::now();
    /// assert_eq!((now + Duration::from_secs(1)).duration_since(now), Duration::from_secs(1));
    /// assert_eq!(now.duration_since(now + Duration::from_secs(1)), Duration::ZERO);
    /// ```
    #[inline]
    #[must_use]
    pub fn duration_since(self, earlier: Self) -> Duration {
        self.checked_duration_since(earlier).unwrap_or(Duration::ZERO)
    }
}

impl<C> core::ops::Sub for Instant<C> {
    type Output = Duration;

    /// [`duration_since`](Instant::duration_since).
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl SystemTime {
    /// The time of `CLOCK_REALTIME`.
    ///
    /// # Panics
    /// If a sandbox denies every way to read the clock.
    ///
    /// ```
    /// println!("{:?}", vdso_time::SystemTime::now());
    /// ```
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn now() -> Self {
        Realtime::now()
    }

    /// The time of `CLOCK_REALTIME`.
    ///
    /// # Errors
    /// If a sandbox denies every way to read the clock: what it answered.
    ///
    /// ```
    /// println!("{:?}", vdso_time::SystemTime::try_now()?);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    #[inline]
    pub fn try_now() -> Result<Self, Errno> {
        Realtime::try_now()
    }
}

impl<C: WallClock> SystemTime<C> {
    /// How long ago this was.
    ///
    /// # Errors
    /// If it is yet to come, for the clock may have been set back: by how much.
    ///
    /// # Panics
    /// As [`WallClock::now`].
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
    pub fn elapsed(self) -> Result<Duration, SystemTimeError> {
        C::now().duration_since(self)
    }
}

impl<C> SystemTime<C> {
    /// 1970-01-01 00:00:00 on the clock's own scale.
    pub const UNIX_EPOCH: Self = Self::from_nanos(0);

    /// How much later this is than `earlier`.
    ///
    /// # Errors
    /// If `earlier` is later: by how much.
    ///
    /// ```
    /// use core::time::Duration;
    /// use vdso_time::SystemTime;
    ///
    /// let now = SystemTime::now();
    /// assert_eq!((now + Duration::from_secs(1)).duration_since(now), Ok(Duration::from_secs(1)));
    /// assert!(now.duration_since(now + Duration::from_secs(1)).is_err());
    /// ```
    #[inline]
    pub fn duration_since(self, earlier: Self) -> Result<Duration, SystemTimeError> {
        let later = || SystemTimeError(earlier.checked_duration_since(self).unwrap_or(Duration::ZERO));
        self.checked_duration_since(earlier).ok_or_else(later)
    }
}

#[cfg(feature = "std")]
impl From<SystemTime> for std::time::SystemTime {
    fn from(time: SystemTime) -> Self {
        let distance = Duration::from_nanos(time.as_nanos().unsigned_abs());
        // 292 years fit on either side of std's epoch.
        if time.as_nanos() < 0 { Self::UNIX_EPOCH - distance } else { Self::UNIX_EPOCH + distance }
    }
}

/// A time before 1677 or after 2262 saturates.
#[cfg(feature = "std")]
impl From<std::time::SystemTime> for SystemTime {
    fn from(time: std::time::SystemTime) -> Self {
        match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => Self::UNIX_EPOCH + after,
            Err(before) => Self::UNIX_EPOCH - before.duration(),
        }
    }
}
