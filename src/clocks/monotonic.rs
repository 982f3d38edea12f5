//! [`Instant`]: a time of a clock that never goes back.

use core::marker::PhantomData;
use core::ops::Sub;
use core::time::Duration;

use super::common::{clock_trait, refused, time_of_a_clock};
use super::kernel::{Monotonic, MonotonicCoarse};
use super::kernel_time::KernelTime;
use crate::errno::Errno;
use crate::types::{Timespec, operators};

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
/// // A deadline that is 292 years away is as good as none.
/// assert!(start.saturating_add(Duration::MAX) > deadline);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
///
/// Another clock is read by its type:
///
/// ```
/// use vdso_time::{Boottime, Instant};
///
/// const BOOT: Instant<Boottime> = Instant::from_clock_nanos(0);
/// let start = Boottime::now();
/// println!("{:?} since boot, suspended time included", start - BOOT);
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
    time: KernelTime,
    clock: PhantomData<fn() -> C>,
}

time_of_a_clock!(Instant of KernelTime, i64, MonotonicCoarse, "CLOCK_MONOTONIC");

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

impl<C> Instant<C> {
    /// Creates a time of clock `C` from nanoseconds since its zero.
    #[inline]
    #[must_use]
    pub const fn from_clock_nanos(nanos: i64) -> Self {
        Self::new(KernelTime(nanos))
    }

    /// Returns the nanoseconds since the clock's zero, negative before it.
    ///
    /// The zero of `CLOCK_MONOTONIC` is boot; where std's clocks answer, it is the first read.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.time.0
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
        let nanos = self.as_nanos().abs_diff(earlier.as_nanos());
        if self.as_nanos() >= earlier.as_nanos() {
            Some(Duration::from_nanos(nanos))
        } else {
            None
        }
    }

    /// Returns the same as [`duration_since`](Instant::duration_since), as std's method does.
    #[inline]
    #[must_use]
    pub const fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl<C> Sub for Instant<C> {
    type Output = Duration;

    /// Returns the same as [`duration_since`](Instant::duration_since).
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

clock_trait! {
    /// A clock that never goes back: its times are [`Instant`]s.
    ///
    /// The kernel's are [`Monotonic`], [`MonotonicCoarse`] and, on Linux, `MonotonicRaw`,
    /// `Boottime`, `ProcessCpuTime` and `ThreadCpuTime`. They have the same methods without the
    /// trait, so import it only for generic code, and for a clock of your own.
    ///
    /// # Examples
    ///
    /// A test moves the time of its own thread:
    ///
    /// ```
    /// use std::cell::Cell;
    /// use vdso_time::{Duration, Errno, Instant, MonotonicClock};
    ///
    /// fn has_expired<C: MonotonicClock>(start: Instant<C>) -> bool {
    ///     start.elapsed() > Duration::from_secs(3600)
    /// }
    ///
    /// enum TestClock {}
    ///
    /// const START: Instant<TestClock> = Instant::from_clock_nanos(0);
    ///
    /// thread_local! {
    ///     static NOW: Cell<Instant<TestClock>> = const { Cell::new(START) };
    /// }
    ///
    /// impl MonotonicClock for TestClock {
    ///     fn try_now() -> Result<Instant<Self>, Errno> {
    ///         Ok(NOW.get())
    ///     }
    /// }
    ///
    /// assert!(!has_expired(START));
    /// NOW.set(START + Duration::from_secs(3601));
    /// assert!(has_expired(START));
    /// ```
    ///
    /// A clock is a type, so there is no `dyn MonotonicClock`. A program that chooses its clock at
    /// run time keeps the function in a field: `fn() -> Instant`, which may be `Instant::now`, or a
    /// `Box<dyn Fn() -> Instant>`.
    pub trait MonotonicClock of Instant;
}
