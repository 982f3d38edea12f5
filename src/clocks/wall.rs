//! [`SystemTime`]: a time of a wall clock.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use super::common::{cannot_read, time_of_a_clock};
use super::kernel::Realtime;
use super::scale::SameScale;
use super::unix_time::UnixTime;
use crate::errno::Errno;
#[cfg(vdso_time_clock)]
use crate::sys::calls;
#[cfg(vdso_time_clock)]
use crate::types::ClockId;
use crate::types::{Timespec, Timeval, operators};

/// A time of a clock that can be set, by default [`Realtime`].
///
/// It has the methods, the range, the panics and the size of `std::time::SystemTime` on Linux:
/// seconds in an `i64`, and nanoseconds.
///
/// With the feature `std`, it converts from and to std's type, and so to the types of every date
/// crate:
///
/// ```
/// # #[cfg(feature = "std")] {
/// use std::time::SystemTime as StdSystemTime;
/// use vdso_time::SystemTime;
///
/// let now = StdSystemTime::from(SystemTime::now());
/// // chrono: chrono::DateTime::<chrono::Utc>::from(now)
/// // jiff: jiff::Timestamp::try_from(now)?
/// // time: time::OffsetDateTime::from(now)
/// assert!(SystemTime::from(now) <= SystemTime::now());
/// # }
/// ```
///
/// Without the feature `std`, call [`as_nanos`](Self::as_nanos) and pass the number to jiff's
/// `Timestamp::from_nanosecond` or time's `OffsetDateTime::from_unix_timestamp_nanos`.
///
/// The crate has no feature for serde, because serde can already write and read std's type. Give
/// your struct a field of type `std::time::SystemTime`, and convert `into` it.
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
    /// The parameter of `PhantomData` is `C` itself and not, for example, `fn() -> C`, so that a
    /// time is `Send` or `Sync` only if its clock is.
    clock: PhantomData<C>,
}

/// The zero of `CLOCK_REALTIME`, the same as [`SystemTime::UNIX_EPOCH`]: 1970-01-01 00:00:00 UTC.
///
/// For another clock, such as [`RealtimeCoarse`](crate::RealtimeCoarse), use [`SystemTime::EPOCH`].
pub const UNIX_EPOCH: SystemTime = SystemTime::UNIX_EPOCH;

#[cfg(vdso_time_clock)]
impl SystemTime {
    /// Returns the time of `CLOCK_REALTIME`.
    ///
    /// For other clocks, call the function of the clock's type, such as `RealtimeCoarse::now()` or,
    /// in generic code, `C::now()`.
    ///
    /// # Panics
    ///
    /// If the clock cannot be read. `try_now` returns the error.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn now() -> Self {
        match Self::try_now() {
            Ok(now) => now,
            Err(error) => cannot_read::<Realtime>(error),
        }
    }

    /// Returns the time of `CLOCK_REALTIME`, or the error of the read.
    ///
    /// # Errors
    ///
    /// The errors of [`clock_gettime`](crate::clock_gettime).
    #[inline]
    pub fn try_now() -> Result<Self, Errno> {
        calls::clock_gettime(ClockId::REALTIME).map(Self::from_kernel)
    }
}

time_of_a_clock!(
    SystemTime of UnixTime, i128, Realtime, "CLOCK_REALTIME",
    nanos: "# Panics\n\nIf the seconds of the time, rounded down, do not fit in an `i64`.",
    timespec: "\nEvery other time fits.",
);

impl SystemTime {
    /// The zero of `CLOCK_REALTIME`: 1970-01-01 00:00:00 UTC.
    ///
    /// The zero of any clock is [`EPOCH`](SystemTime::EPOCH). But `EPOCH` alone does not tell the
    /// compiler which clock is meant, because Rust ignores the default of a type parameter when it
    /// infers types. So `EPOCH` can be used only where something else determines the clock, while
    /// `UNIX_EPOCH` always belongs to `CLOCK_REALTIME`.
    pub const UNIX_EPOCH: Self = Self::EPOCH;

    /// Creates a time from seconds since 1970, as [`as_secs`](Self::as_secs) returns them.
    ///
    /// For another clock, add a [`Duration`] to its [`EPOCH`](Self::EPOCH).
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Duration, SystemTime};
    ///
    /// const RELEASE: SystemTime = SystemTime::from_secs(1_431_648_000);
    /// assert_eq!(SystemTime::UNIX_EPOCH + Duration::from_secs(1_431_648_000), RELEASE);
    /// assert_eq!(SystemTime::from_secs(-1).as_secs(), -1);
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self::new(UnixTime::new(secs, 0))
    }

    /// Creates a time from milliseconds since 1970, as [`as_millis`](Self::as_millis) returns them.
    ///
    /// For another clock, add a [`Duration`] to its [`EPOCH`](Self::EPOCH).
    #[inline]
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self::new(UnixTime::from_units(millis, 1_000))
    }

    /// Creates a time from microseconds since 1970, as [`as_micros`](Self::as_micros) returns them.
    ///
    /// For another clock, add a [`Duration`] to its [`EPOCH`](Self::EPOCH).
    #[inline]
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self::new(UnixTime::from_units(micros, 1_000_000))
    }
}

impl<C: WallClock> SystemTime<C> {
    /// Returns the duration since this time.
    ///
    /// This function reads the clock `C`, even if the time came from another
    /// [`SystemTimeSource`](crate::SystemTimeSource), such as a mock. For such a time, write
    /// `source.now().duration_since(start)`.
    ///
    /// # Errors
    ///
    /// If this time is in the future, which happens if the clock was set back. The error's
    /// [`duration`](SystemTimeError::duration) says how far.
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
    /// The clock's zero. In a call such as `now.duration_since(SystemTime::EPOCH)`, the compiler
    /// infers the clock from the type of `now`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{RealtimeCoarse, SystemTime};
    ///
    /// let now = RealtimeCoarse::now();
    /// assert_eq!(now.duration_since(SystemTime::EPOCH)?.as_secs() as i64, now.as_secs());
    /// # Ok::<(), vdso_time::SystemTimeError>(())
    /// ```
    pub const EPOCH: Self = Self::new(UnixTime::new(0, 0));

    /// Creates a time of clock `C` from nanoseconds since its zero.
    ///
    /// # Panics
    ///
    /// If the seconds of the time, rounded down, do not fit in an `i64`.
    #[inline]
    #[must_use]
    #[track_caller]
    pub const fn from_clock_nanos(nanos: i128) -> Self {
        Self::from_kernel(
            Timespec::from_all_nanos(nanos).expect("the seconds do not fit in an i64"),
        )
    }

    /// Returns the whole seconds since the clock's zero, rounded down.
    #[inline]
    #[must_use]
    pub const fn as_secs(self) -> i64 {
        self.time.seconds
    }

    /// Returns the whole milliseconds since the clock's zero, rounded down.
    ///
    /// The number saturates if the time is more than 292 million years before or after the zero.
    #[inline]
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.time.units(1_000)
    }

    /// Returns the whole microseconds since the clock's zero, rounded down.
    ///
    /// The number saturates if the time is more than 292,000 years before or after the zero.
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

    /// Returns the part of the time after the whole seconds ([`as_secs`](SystemTime::as_secs)), in
    /// whole milliseconds: a number below 1,000.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::SystemTime;
    ///
    /// let time = SystemTime::from_millis(-1_500); // half a second after second -2
    /// assert_eq!((time.as_secs(), time.subsec_millis()), (-2, 500));
    /// ```
    #[inline]
    #[must_use]
    pub const fn subsec_millis(self) -> u32 {
        self.subsec_nanos() / 1_000_000
    }

    /// Returns the part of the time after the whole seconds ([`as_secs`](SystemTime::as_secs)), in
    /// whole microseconds: a number below 1,000,000.
    #[inline]
    #[must_use]
    pub const fn subsec_micros(self) -> u32 {
        self.subsec_nanos() / 1_000
    }

    /// Returns the part of the time after the whole seconds ([`as_secs`](SystemTime::as_secs)), in
    /// nanoseconds: a number below 1,000,000,000.
    #[inline]
    #[must_use]
    pub const fn subsec_nanos(self) -> u32 {
        self.time.nanos.get()
    }

    /// Returns the duration since `earlier`.
    ///
    /// # Errors
    ///
    /// If `earlier` is later than this time. The error's [`duration`](SystemTimeError::duration)
    /// says by how much.
    #[inline]
    pub const fn duration_since(&self, earlier: Self) -> Result<Duration, SystemTimeError> {
        let this = self.time.since_earliest();
        let earlier = earlier.time.since_earliest();
        match this.checked_sub(earlier) {
            Some(distance) => Ok(distance),
            None => Err(SystemTimeError(earlier.abs_diff(this))),
        }
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

/// The error of [`SystemTime::duration_since`] and [`SystemTime::elapsed`]: the other time is
/// later.
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
/// The kernel's clocks of this kind are [`Realtime`], [`RealtimeCoarse`](crate::RealtimeCoarse)
/// and, on Linux, `Tai`. These types have the functions of the trait as inherent functions, so
/// import the trait only for generic code and for a clock of your own. The documentation of
/// [`MonotonicClock`](crate::MonotonicClock) has an example of a clock whose time a test moves.
///
/// # Examples
///
/// A clock of the kernel that has no type here:
///
/// ```
/// use vdso_time::{ClockId, Errno, SystemTime, WallClock, clock_gettime};
///
/// /// Auxiliary clock 0, since Linux 6.17. It can be set.
/// struct Aux0;
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
    /// For a kernel clock, the errors of [`clock_gettime`](crate::clock_gettime).
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
            Err(error) => cannot_read::<Self>(error),
        }
    }
}
