//! [`SystemTime`]: a time of a wall clock.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use super::common::{refused, time_of_a_clock};
use super::kernel::{Realtime, RealtimeCoarse};
use super::unix_time::UnixTime;
use crate::errno::Errno;
use crate::types::{Timespec, Timeval};

/// A time of a clock that can be set, by default [`Realtime`].
///
/// It has the methods, the range, the panics and the size of `std::time::SystemTime` on Linux:
/// seconds in an `i64`, and nanoseconds.
///
/// The feature `std` converts it from and to std's type, and so to every crate of dates:
///
/// ```
/// # #[cfg(feature = "std")] {
/// use std::time::SystemTime as StdSystemTime;
/// use vdso_time::SystemTime;
///
/// let now = StdSystemTime::from(SystemTime::now());
/// // chrono: chrono::DateTime::<chrono::Utc>::from(now)
/// // jiff: jiff::Timestamp::try_from(now)?
/// assert!(SystemTime::from(now) <= SystemTime::now());
/// # }
/// ```
///
/// # Examples
///
/// ```
/// use vdso_time::{Duration, SystemTime};
///
/// let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
/// assert!(since_epoch.as_secs() > 1_700_000_000);
/// // 9999-12-31T23:59:59Z
/// let never = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
/// assert!(never > SystemTime::now());
/// # Ok::<(), vdso_time::SystemTimeError>(())
/// ```
///
/// Times of different clocks cannot be mixed:
///
/// ```compile_fail,E0308
/// use vdso_time::{SystemTime, Tai};
///
/// let mixed = SystemTime::now().duration_since(Tai::now());
/// ```
pub struct SystemTime<C = Realtime> {
    time: UnixTime,
    clock: PhantomData<fn() -> C>,
}

/// The zero of `CLOCK_REALTIME`, as [`SystemTime::UNIX_EPOCH`]: 1970-01-01 00:00:00 UTC.
pub const UNIX_EPOCH: SystemTime = SystemTime::UNIX_EPOCH;

time_of_a_clock!(SystemTime);

impl SystemTime {
    /// The zero of `CLOCK_REALTIME`: 1970-01-01 00:00:00 UTC.
    ///
    /// [`EPOCH`](SystemTime::EPOCH) is the zero of any clock.
    pub const UNIX_EPOCH: Self = Self::EPOCH;

    /// Creates a time of `CLOCK_REALTIME` from nanoseconds since 1970.
    ///
    /// [`from_clock_nanos`](SystemTime::from_clock_nanos) creates a time of any clock.
    ///
    /// # Panics
    ///
    /// If the time is more than [`i64::MAX`] seconds before or after 1970.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::SystemTime;
    ///
    /// const RELEASED: SystemTime = SystemTime::from_nanos(1_700_000_000_000_000_000);
    /// assert_eq!(RELEASED.as_nanos(), 1_700_000_000_000_000_000);
    /// ```
    #[inline]
    #[must_use]
    #[track_caller]
    pub const fn from_nanos(nanos: i128) -> Self {
        Self::from_clock_nanos(nanos)
    }

    /// Creates a time of `CLOCK_REALTIME` from seconds and nanoseconds, such as those of a file.
    ///
    /// `SystemTime::try_from` does the same for any clock, if something else names the clock.
    ///
    /// # Errors
    ///
    /// `EINVAL`: `tv_nsec` is not in `0..1_000_000_000`.
    #[inline]
    pub fn from_timespec(time: Timespec) -> Result<Self, Errno> {
        time.try_into()
    }
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
    /// If the clock cannot be read. `C::try_now()?.duration_since(start)` returns the error.
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
    const fn new(seconds: i64, nanos: u32) -> Self {
        Self { time: UnixTime::new(seconds, nanos), clock: PhantomData }
    }

    /// The clock's zero, for which the argument of a method names the clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{RealtimeCoarse, SystemTime};
    ///
    /// let since_epoch = RealtimeCoarse::now().duration_since(SystemTime::EPOCH)?;
    /// assert!(since_epoch.as_secs() > 1_700_000_000);
    /// # Ok::<(), vdso_time::SystemTimeError>(())
    /// ```
    pub const EPOCH: Self = Self::new(0, 0);

    /// Creates a time of clock `C` from nanoseconds since its zero.
    ///
    /// # Panics
    ///
    /// If the time is more than [`i64::MAX`] seconds before or after the zero.
    #[inline]
    #[must_use]
    #[track_caller]
    pub const fn from_clock_nanos(nanos: i128) -> Self {
        // For a caller with 64 bits the test disappears, and so does the long division.
        if nanos as i64 as i128 == nanos {
            let Timespec { tv_sec, tv_nsec } = Timespec::from_nanos(nanos as i64);
            return Self::new(tv_sec, tv_nsec as u32);
        }
        let seconds = nanos.div_euclid(1_000_000_000);
        assert!(seconds as i64 as i128 == seconds, "the seconds do not fit in an i64");
        Self::new(seconds as i64, nanos.rem_euclid(1_000_000_000) as u32)
    }

    /// Returns the whole seconds since the clock's zero, rounded down.
    #[inline]
    #[must_use]
    pub const fn as_secs(self) -> i64 {
        self.time.seconds()
    }

    /// Returns the whole milliseconds since the clock's zero, rounded down.
    ///
    /// The number saturates 292 million years before and after the zero.
    ///
    /// # Examples
    ///
    /// ```
    /// let millis = vdso_time::RealtimeCoarse::now().as_millis();
    /// assert!(millis > 1_700_000_000_000);
    /// ```
    #[inline]
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.time.units(1_000)
    }

    /// Returns the whole microseconds since the clock's zero, rounded down.
    ///
    /// The number saturates 292,000 years before and after the zero.
    #[inline]
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.time.units(1_000_000)
    }

    /// Returns the nanoseconds since the clock's zero, negative before it.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> i128 {
        self.time.timespec().as_nanos()
    }

    /// Returns the nanoseconds after [`as_secs`](SystemTime::as_secs), below 1,000,000,000.
    #[inline]
    #[must_use]
    pub const fn subsec_nanos(self) -> u32 {
        self.time.subsec_nanos()
    }

    /// Creates a time from the kernel's answer, which is well-formed.
    #[inline]
    pub(super) const fn from_kernel(time: Timespec) -> Self {
        Self::new(time.tv_sec, time.tv_nsec as u32)
    }

    /// Returns the duration since `earlier`.
    ///
    /// # Errors
    ///
    /// If `earlier` is later. The error has the distance.
    #[inline]
    pub const fn duration_since(&self, earlier: Self) -> Result<Duration, SystemTimeError> {
        let (this, earlier) = (self.time.since_earliest(), earlier.time.since_earliest());
        match this.checked_sub(earlier) {
            Some(distance) => Ok(distance),
            None => Err(SystemTimeError(earlier.abs_diff(this))),
        }
    }

    /// Returns the time this much later, or `None` if it does not fit.
    #[inline]
    #[must_use]
    pub const fn checked_add(&self, duration: Duration) -> Option<Self> {
        match self.time.since_earliest().checked_add(duration) {
            Some(since) => Some(Self::after_earliest(since)),
            None => None,
        }
    }

    /// Returns the time this much earlier, or `None` if it does not fit.
    #[inline]
    #[must_use]
    pub const fn checked_sub(&self, duration: Duration) -> Option<Self> {
        match self.time.since_earliest().checked_sub(duration) {
            Some(since) => Some(Self::after_earliest(since)),
            None => None,
        }
    }

    /// Returns the time this much later, or the latest time that fits.
    #[inline]
    #[must_use]
    pub const fn saturating_add(&self, duration: Duration) -> Self {
        Self::after_earliest(self.time.since_earliest().saturating_add(duration))
    }

    /// Returns the time this much earlier, or the earliest time that fits.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(&self, duration: Duration) -> Self {
        Self::after_earliest(self.time.since_earliest().saturating_sub(duration))
    }

    /// Creates a time from the duration since the earliest one.
    #[inline]
    const fn after_earliest(duration: Duration) -> Self {
        let seconds = i64::MIN.wrapping_add_unsigned(duration.as_secs());
        Self::new(seconds, duration.subsec_nanos())
    }
}

impl From<SystemTime<RealtimeCoarse>> for SystemTime {
    /// Converts a time of `CLOCK_REALTIME_COARSE` to the same time of `CLOCK_REALTIME`.
    #[inline]
    fn from(time: SystemTime<RealtimeCoarse>) -> Self {
        Self { time: time.time, clock: PhantomData }
    }
}

impl<C> From<SystemTime<C>> for Timespec {
    /// Converts a time to seconds and nanoseconds since the clock's zero.
    #[inline]
    fn from(time: SystemTime<C>) -> Self {
        time.time.timespec()
    }
}

impl<C> TryFrom<Timespec> for SystemTime<C> {
    type Error = Errno;

    /// Converts seconds and nanoseconds since the clock's zero, such as a time of a file.
    ///
    /// Name the clock in the result's type, because a `Timespec` does not name it.
    ///
    /// # Errors
    ///
    /// `EINVAL`: `tv_nsec` is not in `0..1_000_000_000`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Errno, SystemTime, Timespec};
    ///
    /// let time: SystemTime = Timespec { tv_sec: 1_700_000_000, tv_nsec: 5 }.try_into()?;
    /// assert_eq!(time, SystemTime::from_nanos(1_700_000_000_000_000_005));
    /// # Ok::<(), Errno>(())
    /// ```
    #[inline]
    fn try_from(time: Timespec) -> Result<Self, Errno> {
        time.subsec_nanos().map(|nanos| Self::new(time.tv_sec, nanos))
    }
}

impl TryFrom<Timeval> for SystemTime {
    type Error = Errno;

    /// Converts the answer of [`gettimeofday`](crate::gettimeofday).
    ///
    /// # Errors
    ///
    /// `EINVAL`: `tv_usec` is not in `0..1_000_000`.
    #[inline]
    fn try_from(time: Timeval) -> Result<Self, Errno> {
        Timespec::try_from(time)?.try_into()
    }
}

/// The error of [`SystemTime::duration_since`]: the other time is later.
///
/// # Examples
///
/// ```
/// use vdso_time::{Duration, SystemTime};
///
/// let now = SystemTime::now();
/// let error = now.duration_since(now + Duration::from_secs(3)).unwrap_err();
/// assert_eq!(error.duration(), Duration::from_secs(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SystemTimeError(Duration);

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

/// A clock that can be set, and so can go back: its times are [`SystemTime`]s.
///
/// The kernel's are [`Realtime`], [`RealtimeCoarse`] and [`Tai`]. They have the same methods
/// without the trait, so import it only for generic code, and for a clock of your own;
/// [`MonotonicClock`](crate::MonotonicClock) has an example whose time moves.
///
/// [`Tai`]: crate::Tai
///
/// # Examples
///
/// ```
/// use vdso_time::{Errno, Duration, SystemTime, WallClock};
///
/// /// The day after the last one that an X.509 certificate can name.
/// enum Year10000 {}
///
/// impl WallClock for Year10000 {
///     fn try_now() -> Result<SystemTime<Self>, Errno> {
///         Ok(SystemTime::EPOCH + Duration::from_secs(253_402_300_800))
///     }
/// }
///
/// fn has_expired<C: WallClock>(end: SystemTime<C>) -> bool {
///     C::now() > end
/// }
///
/// assert!(has_expired::<Year10000>(Year10000::now() - Duration::from_secs(1)));
/// ```
///
/// A clock of the kernel that has no type here:
///
/// ```
/// use vdso_time::{ClockId, Errno, SystemTime, WallClock, clock_gettime};
///
/// /// Auxiliary clock 0, since Linux 6.17. It can be set.
/// enum Aux0 {}
///
/// impl WallClock for Aux0 {
///     fn try_now() -> Result<SystemTime<Self>, Errno> {
///         clock_gettime(ClockId::aux(0))?.try_into()
///     }
/// }
///
/// println!("{:?}", Aux0::try_now());
/// ```
pub trait WallClock: Sized {
    /// Returns the current time, or the error of the clock.
    ///
    /// # Errors
    ///
    /// For a kernel clock, those of [`clock_gettime`](crate::clock_gettime).
    fn try_now() -> Result<SystemTime<Self>, Errno>;

    /// Returns the current time.
    ///
    /// # Panics
    ///
    /// If `try_now` returns an error.
    #[inline]
    #[must_use]
    #[track_caller]
    fn now() -> SystemTime<Self> {
        match Self::try_now() {
            Ok(now) => now,
            Err(error) => refused::<Self>(error),
        }
    }
}
