//! [`SystemTime`]: a time of a wall clock.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::num::NonZero;
use core::time::Duration;

#[cfg(vdso_time_linux)]
use super::clocks::Tai;
use super::clocks::{Realtime, RealtimeCoarse};
use super::common::{kernel_clocks, refused, time_of_a_clock};
use crate::errno::Errno;
use crate::types::Timespec;

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

time_of_a_clock!(SystemTime, Realtime, "CLOCK_REALTIME");

kernel_clocks!(WallClock -> SystemTime:
    Realtime = REALTIME,
    RealtimeCoarse = REALTIME_COARSE,
    #[cfg(vdso_time_linux)]
    Tai = TAI
);

impl SystemTime {
    /// The clock's zero: 1970-01-01 00:00:00 UTC.
    pub const UNIX_EPOCH: Self = Self::from_nanos(0);
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
        Self { time: UnixTime { seconds, nanos: Nanos::new(nanos) }, clock: PhantomData }
    }

    /// Creates a time from nanoseconds since the clock's zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Realtime, SystemTime};
    ///
    /// const RELEASED: SystemTime<Realtime> = SystemTime::from_nanos(1_700_000_000_000_000_000);
    /// assert_eq!(RELEASED.as_nanos(), 1_700_000_000_000_000_000);
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        let Timespec { tv_sec, tv_nsec } = Timespec::from_nanos(nanos);
        Self::new(tv_sec, tv_nsec as u32)
    }

    /// Returns the nanoseconds since the clock's zero, negative before it.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> i128 {
        self.time.timespec().as_nanos()
    }

    /// Creates a time from the kernel's answer, which is well-formed.
    #[inline]
    const fn from_kernel(time: Timespec) -> Self {
        Self::new(time.tv_sec, time.tv_nsec as u32)
    }

    /// Returns the duration since `earlier`.
    ///
    /// # Errors
    ///
    /// If `earlier` is later. The error has the distance.
    #[inline]
    pub fn duration_since(&self, earlier: Self) -> Result<Duration, SystemTimeError> {
        let distance = self.time.since_earliest().abs_diff(earlier.time.since_earliest());
        if *self >= earlier { Ok(distance) } else { Err(SystemTimeError(distance)) }
    }

    /// Returns the time this much later, or `None` if it does not fit.
    #[inline]
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        let time = UnixTime::after_earliest(self.time.since_earliest().checked_add(duration)?);
        Some(Self { time, ..*self })
    }

    /// Returns the time this much earlier, or `None` if it does not fit.
    #[inline]
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        let time = UnixTime::after_earliest(self.time.since_earliest().checked_sub(duration)?);
        Some(Self { time, ..*self })
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

/// Requires the feature `std`.
#[cfg(feature = "std")]
impl From<SystemTime> for std::time::SystemTime {
    /// Converts a time.
    ///
    /// # Panics
    ///
    /// Never on Linux and other Unix systems. On others if std's type cannot hold the time: on
    /// Windows before 1601 and after the year 30,000, on WASI before 1970.
    fn from(SystemTime { time, .. }: SystemTime) -> Self {
        let seconds = Duration::from_secs(time.seconds.unsigned_abs());
        let second = if time.seconds < 0 { Self::UNIX_EPOCH - seconds } else { Self::UNIX_EPOCH + seconds };
        second + Duration::from_nanos(time.nanos.get().into())
    }
}

/// Requires the feature `std`.
#[cfg(feature = "std")]
impl From<SystemTime<RealtimeCoarse>> for std::time::SystemTime {
    /// Converts a time of `CLOCK_REALTIME_COARSE`, as one of `CLOCK_REALTIME`.
    fn from(time: SystemTime<RealtimeCoarse>) -> Self {
        SystemTime::<Realtime>::from(time).into()
    }
}

/// Requires the feature `std`.
#[cfg(feature = "std")]
impl From<std::time::SystemTime> for SystemTime {
    /// Converts a time, such as that of a file.
    ///
    /// # Panics
    ///
    /// Never on Linux, other Unix systems and Windows. Elsewhere if the time is more than
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
    fn from(time: std::time::SystemTime) -> Self {
        match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => Self::UNIX_EPOCH + after,
            Err(before) => Self::UNIX_EPOCH - before.duration(),
        }
    }
}

/// What std's type has on Linux.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct UnixTime {
    seconds: i64,
    nanos: Nanos,
}

impl UnixTime {
    /// Returns the time since the earliest one, so that `Duration` does the arithmetic.
    #[inline]
    fn since_earliest(self) -> Duration {
        let seconds = self.seconds.wrapping_sub(i64::MIN) as u64;
        // The nanoseconds are below a second. If the compiler sees that, `new` has no panic.
        Duration::new(seconds, self.nanos.get().min(999_999_999))
    }

    #[inline]
    fn after_earliest(duration: Duration) -> Self {
        let seconds = i64::MIN.wrapping_add_unsigned(duration.as_secs());
        Self { seconds, nanos: Nanos::new(duration.subsec_nanos()) }
    }

    #[inline]
    const fn timespec(self) -> Timespec {
        Timespec { tv_sec: self.seconds, tv_nsec: self.nanos.get() as i64 }
    }
}

/// Nanoseconds below a second, and the highest bit, which is always set. So the number is never 0,
/// and `Option<SystemTime>` takes 16 bytes, as std's. Setting the bit is one instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Nanos(NonZero<u32>);

impl Nanos {
    const BIT: u32 = 1 << 31;

    #[inline]
    const fn new(nanos: u32) -> Self {
        match NonZero::new(nanos | Self::BIT) {
            Some(nanos) => Self(nanos),
            None => unreachable!(),
        }
    }

    #[inline]
    const fn get(self) -> u32 {
        self.0.get() & !Self::BIT
    }
}

impl Hash for Nanos {
    /// Hashes the number, as std does.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
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
/// without the trait. Import it for generic code, and for a clock of your own;
/// [`MonotonicClock`](crate::MonotonicClock) has an example whose time moves.
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
///         Ok(SystemTime::from_nanos(0) + Duration::from_secs(253_402_300_800))
///     }
/// }
///
/// fn has_expired<C: WallClock>(end: SystemTime<C>) -> bool {
///     C::now() > end
/// }
///
/// assert!(has_expired::<Year10000>(Year10000::now() - Duration::from_secs(1)));
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
