//! [`Instant`]: a time of a clock that never goes back.

use core::marker::PhantomData;
use core::ops::Sub;
use core::time::Duration;

use super::common::{refused, time_of_a_clock};
use super::kernel::{Monotonic, MonotonicCoarse};
use crate::errno::Errno;
use crate::types::Timespec;

/// A time of a clock that never goes back, by default [`Monotonic`].
///
/// It has the methods of `std::time::Instant`, with the same receivers. It takes 8 bytes: a count
/// of nanoseconds, as in the kernel (`ktime_t`). So it ends 292 years before and after the clock's
/// zero, and `+` and `-` panic beyond that.
///
/// The feature `std` converts it to std's type, for a function that takes a deadline:
/// `std::time::Instant::from(instant)`. `Instant::try_from` is the way back.
///
/// # Examples
///
/// ```
/// use vdso_time::{Duration, Instant};
///
/// let start = Instant::try_now()?;
/// println!("{:?}", start.elapsed());
/// let deadline = start + Duration::from_secs(1);
/// assert_eq!(deadline - start, Duration::from_secs(1));
/// assert_eq!(start - deadline, Duration::ZERO);
/// assert_eq!(start.checked_duration_since(deadline), None);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
///
/// Another clock is read by its type:
///
/// ```
/// use vdso_time::Boottime;
///
/// let start = Boottime::now();
/// println!("{:?}, suspended time included", start.elapsed());
/// ```
///
/// Times of different clocks cannot be mixed:
///
/// ```compile_fail,E0308
/// use vdso_time::{Boottime, Instant, Monotonic};
///
/// let monotonic: Instant<Monotonic> = Instant::now();
/// let mixed = Boottime::now() - monotonic;
/// ```
pub struct Instant<C = Monotonic> {
    time: i64,
    clock: PhantomData<fn() -> C>,
}

time_of_a_clock!(Instant);

impl<C: MonotonicClock> Instant<C> {
    /// Returns the duration since this time, or 0 if it is in the future.
    ///
    /// # Panics
    ///
    /// If the clock cannot be read. `C::try_now()?.duration_since(start)` returns the error.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn elapsed(&self) -> Duration {
        C::now().duration_since(*self)
    }
}

impl Instant {
    /// Creates a time of `CLOCK_MONOTONIC` from nanoseconds since its zero.
    ///
    /// [`from_clock_nanos`](Instant::from_clock_nanos) creates a time of any clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::Instant;
    ///
    /// const BOOT: Instant = Instant::from_nanos(0);
    /// println!("{:?} since boot", BOOT.elapsed());
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self::from_clock_nanos(nanos)
    }

    /// Creates a time of `CLOCK_MONOTONIC` from seconds and nanoseconds since its zero.
    ///
    /// `Instant::try_from` does the same for any clock, if something else names the clock.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `tv_nsec` is not in `0..1_000_000_000`.
    /// - `EOVERFLOW`: the time is more than 292 years before or after the clock's zero.
    #[inline]
    pub fn from_timespec(time: Timespec) -> Result<Self, Errno> {
        time.try_into()
    }
}

impl<C> Instant<C> {
    /// Creates a time of clock `C` from nanoseconds since its zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Boottime, Instant};
    ///
    /// const BOOT: Instant<Boottime> = Instant::from_clock_nanos(0);
    /// println!("{:?} since boot", BOOT.elapsed());
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_clock_nanos(nanos: i64) -> Self {
        Self { time: nanos, clock: PhantomData }
    }

    /// Returns the nanoseconds since the clock's zero, negative before it.
    ///
    /// The zero of `CLOCK_MONOTONIC` is boot; where std's clocks answer, it is the first read.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.time
    }

    /// Creates a time from the kernel's answer, which fits.
    #[inline]
    pub(super) const fn from_kernel(time: Timespec) -> Self {
        Self::from_clock_nanos(time.ktime())
    }

    /// Returns the duration since `earlier`, or 0 if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn duration_since(&self, earlier: Self) -> Duration {
        match self.checked_duration_since(earlier) {
            Some(duration) => duration,
            None => Duration::ZERO,
        }
    }

    /// Returns the duration since `earlier`, or `None` if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        let nanos = self.time.abs_diff(earlier.time);
        if self.time >= earlier.time { Some(Duration::from_nanos(nanos)) } else { None }
    }

    /// Returns the duration since `earlier`, or 0 if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }

    /// Returns the time this much later, or `None` if it does not fit.
    #[inline]
    #[must_use]
    pub const fn checked_add(&self, duration: Duration) -> Option<Self> {
        let Some(nanos) = nanos(duration) else { return None };
        match self.time.checked_add_unsigned(nanos) {
            Some(nanos) => Some(Self::from_clock_nanos(nanos)),
            None => None,
        }
    }

    /// Returns the time this much earlier, or `None` if it does not fit.
    #[inline]
    #[must_use]
    pub const fn checked_sub(&self, duration: Duration) -> Option<Self> {
        let Some(nanos) = nanos(duration) else { return None };
        match self.time.checked_sub_unsigned(nanos) {
            Some(nanos) => Some(Self::from_clock_nanos(nanos)),
            None => None,
        }
    }

    /// Returns the time this much later, or the latest time that fits.
    ///
    /// A deadline that is further away than 292 years is as good as none, so a time-out of
    /// `Duration::MAX` needs no case of its own:
    ///
    /// ```
    /// use vdso_time::{Duration, Instant};
    ///
    /// let deadline = Instant::now().saturating_add(Duration::MAX);
    /// assert!(Instant::now() < deadline);
    /// ```
    #[inline]
    #[must_use]
    pub const fn saturating_add(&self, duration: Duration) -> Self {
        match self.checked_add(duration) {
            Some(later) => later,
            None => Self::from_clock_nanos(i64::MAX),
        }
    }

    /// Returns the time this much earlier, or the earliest time that fits.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(&self, duration: Duration) -> Self {
        match self.checked_sub(duration) {
            Some(earlier) => earlier,
            None => Self::from_clock_nanos(i64::MIN),
        }
    }
}

/// Returns the nanoseconds of a duration, or `None` if they do not fit.
#[inline]
const fn nanos(duration: Duration) -> Option<u64> {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { None } else { Some(nanos as u64) }
}

impl<C> Sub for Instant<C> {
    type Output = Duration;

    /// Returns the same as [`duration_since`](Instant::duration_since).
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl From<Instant<MonotonicCoarse>> for Instant {
    /// Converts a time of `CLOCK_MONOTONIC_COARSE` to the same time of `CLOCK_MONOTONIC`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Instant, MonotonicCoarse};
    ///
    /// let tick: Instant = MonotonicCoarse::now().into();
    /// println!("the last tick was {:?} ago", tick.elapsed());
    /// ```
    #[inline]
    fn from(time: Instant<MonotonicCoarse>) -> Self {
        Self::from_nanos(time.as_nanos())
    }
}

impl<C> From<Instant<C>> for Timespec {
    /// Converts a time to seconds and nanoseconds since the clock's zero.
    #[inline]
    fn from(time: Instant<C>) -> Self {
        Self::from_nanos(time.as_nanos())
    }
}

impl<C> TryFrom<Timespec> for Instant<C> {
    type Error = Errno;

    /// Converts seconds and nanoseconds since the clock's zero.
    ///
    /// Name the clock in the result's type, because a `Timespec` does not name it.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: `tv_nsec` is not in `0..1_000_000_000`.
    /// - `EOVERFLOW`: the time is more than 292 years before or after the clock's zero.
    #[inline]
    fn try_from(time: Timespec) -> Result<Self, Errno> {
        time.subsec_nanos()?;
        i64::try_from(time.as_nanos()).map(Self::from_clock_nanos).map_err(|_| Errno::EOVERFLOW)
    }
}

/// A clock that never goes back: its times are [`Instant`]s.
///
/// The kernel's are [`Monotonic`], [`MonotonicRaw`], [`MonotonicCoarse`], [`Boottime`],
/// [`ProcessCpuTime`] and [`ThreadCpuTime`]. They have the same methods without the trait, so
/// import it only for generic code, and for a clock of your own.
///
/// [`MonotonicRaw`]: crate::MonotonicRaw
/// [`Boottime`]: crate::Boottime
/// [`ProcessCpuTime`]: crate::ProcessCpuTime
/// [`ThreadCpuTime`]: crate::ThreadCpuTime
///
/// # Examples
///
/// A test moves the time of its own thread:
///
/// ```
/// use std::cell::Cell;
/// use vdso_time::{Duration, Errno, Instant, Monotonic, MonotonicClock};
///
/// struct Session<C: MonotonicClock = Monotonic> {
///     start: Instant<C>,
/// }
///
/// impl<C: MonotonicClock> Session<C> {
///     fn new() -> Self {
///         Self { start: C::now() }
///     }
///
///     fn has_expired(&self) -> bool {
///         self.start.elapsed() > Duration::from_secs(3600)
///     }
/// }
///
/// enum TestClock {}
///
/// thread_local! {
///     static NOW: Cell<Instant<TestClock>> = const { Cell::new(Instant::from_clock_nanos(0)) };
/// }
///
/// impl MonotonicClock for TestClock {
///     fn try_now() -> Result<Instant<Self>, Errno> {
///         Ok(NOW.get())
///     }
/// }
///
/// let session = Session::<TestClock>::new();
/// assert!(!session.has_expired());
/// NOW.set(NOW.get() + Duration::from_secs(3601));
/// assert!(session.has_expired());
/// ```
///
/// A clock is a type, so there is no `dyn MonotonicClock`. A program that chooses its clock at run
/// time keeps the function in a field: `fn() -> Instant`, which may be `Instant::now`, or a
/// `Box<dyn Fn() -> Instant>`.
pub trait MonotonicClock: Sized {
    /// Returns the current time, or the error of the clock.
    ///
    /// # Errors
    ///
    /// For a kernel clock, those of [`clock_gettime`](crate::clock_gettime).
    fn try_now() -> Result<Instant<Self>, Errno>;

    /// Returns the current time.
    ///
    /// # Panics
    ///
    /// If `try_now` returns an error.
    #[inline]
    #[must_use]
    #[track_caller]
    fn now() -> Instant<Self> {
        match Self::try_now() {
            Ok(now) => now,
            Err(error) => refused::<Self>(error),
        }
    }
}
