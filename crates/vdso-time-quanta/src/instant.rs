use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// A time of a [`Clock`](crate::Clock), with the methods of std's `Instant`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Instant(pub(crate) u64);

impl Instant {
    /// Returns the time of the clock, or of the mock of [`with_clock`](crate::with_clock).
    ///
    /// # Panics
    ///
    /// As [`Clock::now`](crate::Clock::now).
    #[inline]
    #[must_use]
    pub fn now() -> Self {
        Self(crate::mocked().unwrap_or_else(crate::monotonic))
    }

    /// Returns the time of [`Clock::recent`](crate::Clock::recent).
    ///
    /// # Panics
    ///
    /// As [`Clock::now`](crate::Clock::now).
    #[inline]
    #[must_use]
    pub fn recent() -> Self {
        crate::recent().unwrap_or_else(Self::now)
    }

    /// Returns the time that has passed since `earlier`, or 0 if `earlier` is later.
    #[inline]
    #[must_use]
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }

    /// Returns the time that has passed since `earlier`, or `None` if `earlier` is later.
    #[inline]
    #[must_use]
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// Returns the time that has passed since `earlier`, or 0 if `earlier` is later.
    #[inline]
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }

    /// Returns the time that has passed since this instant, or 0 if the instant is later than
    /// [`now`](Self::now).
    ///
    /// # Panics
    ///
    /// As [`now`](Self::now).
    #[inline]
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// Returns this instant plus a duration, or `None` if the nanoseconds of the sum do not fit in
    /// a `u64`.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        self.0
            .checked_add(u64::try_from(duration.as_nanos()).ok()?)
            .map(Self)
    }

    /// Returns this instant minus a duration, or `None` if the result would be before the zero of
    /// the clock.
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        self.0
            .checked_sub(u64::try_from(duration.as_nanos()).ok()?)
            .map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration)
            .expect("overflow when adding duration to instant")
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        self.checked_sub(duration)
            .expect("overflow when subtracting duration from instant")
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "prost")]
impl From<Instant> for prost_types::Timestamp {
    /// Converts the time since the zero of the clock. That zero is not the Epoch, so the result is
    /// not a date.
    fn from(Instant(nanos): Instant) -> Self {
        let time = Duration::from_nanos(nanos);
        Self {
            seconds: time.as_secs() as i64,
            nanos: time.subsec_nanos() as i32,
        }
    }
}
