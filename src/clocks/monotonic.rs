//! [`Instant`]: a time of a clock that never goes back.

use core::marker::PhantomData;
use core::ops::Sub;
use core::time::Duration;

use super::common::{cannot_read, time_of_a_clock};
use super::kernel::Monotonic;
use super::kernel_time::KernelTime;
use super::scale::SameScale;
use crate::errno::Errno;
#[cfg(vdso_time_clock)]
use crate::sys::calls;
#[cfg(vdso_time_clock)]
use crate::types::ClockId;
use crate::types::{Timespec, operators};

/// A time of a clock that never goes back, by default [`Monotonic`].
///
/// An `Instant` has the methods of `std::time::Instant`, with the same receivers. It takes 8 bytes,
/// because it is a count of nanoseconds in an `i64`, like the kernel's `ktime_t`. So its range is
/// 292 years before and after the clock's zero. If adding or subtracting a [`Duration`] leads out
/// of this range, `+` and `-` panic.
///
/// With the feature `std`, `std::time::Instant::from(instant)` converts it to std's type, for a
/// function that takes a deadline, and `Instant::try_from` converts back. tokio converts from std's
/// type: `tokio::time::Instant::from_std(instant.into())`.
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
/// [`Duration::as_secs_f64`] returns seconds as a floating-point number. This also works for the
/// time since the clock's zero:
///
/// ```
/// use vdso_time::Instant;
///
/// let uptime = (Instant::now() - Instant::EPOCH).as_secs_f64();
/// println!("up {uptime:.1} s");
/// ```
///
/// `Instant::<Boottime>::now()` does not exist. To read another clock, call `now()` on its type or,
/// in generic code, on the type parameter:
///
/// ```
/// use vdso_time::{Boottime, Instant, MonotonicClock};
///
/// let start = Boottime::now();
/// println!("{:?} since boot, suspended time included", start - Instant::EPOCH);
///
/// struct Limiter<C: MonotonicClock> {
///     start: Instant<C>,
/// }
///
/// impl<C: MonotonicClock> Limiter<C> {
///     fn new() -> Self {
///         Self { start: C::now() }
///     }
/// }
/// assert!(Limiter::<Boottime>::new().start >= start);
/// ```
///
/// Times of different clocks cannot be mixed:
///
/// ```compile_fail,E0308
/// use vdso_time::{Boottime, Instant, Monotonic};
///
/// let monotonic: Instant<Monotonic> = Instant::now();
/// let mixed = Boottime::now().duration_since(monotonic);
/// ```
pub struct Instant<C = Monotonic> {
    time: KernelTime,
    /// The parameter of `PhantomData` is `C` itself and not, for example, `fn() -> C`, so that a
    /// time is `Send` or `Sync` only if its clock is.
    clock: PhantomData<C>,
}

#[cfg(vdso_time_clock)]
impl Instant {
    /// Returns the time of `CLOCK_MONOTONIC`.
    ///
    /// For other clocks, call the function of the clock's type, such as `Boottime::now()` or, in
    /// generic code, `C::now()`.
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
            Err(error) => cannot_read::<Monotonic>(error),
        }
    }

    /// Returns the time of `CLOCK_MONOTONIC`, or the error of the read.
    ///
    /// # Errors
    ///
    /// The errors of [`clock_gettime`](crate::clock_gettime).
    #[inline]
    pub fn try_now() -> Result<Self, Errno> {
        calls::clock_gettime(ClockId::MONOTONIC).map(Self::from_kernel)
    }
}

time_of_a_clock!(
    Instant of KernelTime, i64, Monotonic, "CLOCK_MONOTONIC",
    nanos: "Every number fits.",
    timespec: "- `EOVERFLOW`: the time is more than 292 years before or after the zero.",
);

impl Instant {
    /// Creates a time of `CLOCK_MONOTONIC` from milliseconds since its zero.
    ///
    /// For another clock, add a [`Duration`] to its [`EPOCH`](Self::EPOCH).
    ///
    /// # Panics
    ///
    /// If the time is more than 292 years before or after the zero.
    #[inline]
    #[must_use]
    #[track_caller]
    pub const fn from_millis(millis: i64) -> Self {
        Self::from_nanos(nanos(millis, 1_000_000))
    }

    /// Creates a time of `CLOCK_MONOTONIC` from microseconds since its zero.
    ///
    /// For another clock, add a [`Duration`] to its [`EPOCH`](Self::EPOCH).
    ///
    /// # Panics
    ///
    /// If the time is more than 292 years before or after the zero.
    #[inline]
    #[must_use]
    #[track_caller]
    pub const fn from_micros(micros: i64) -> Self {
        Self::from_nanos(nanos(micros, 1_000))
    }
}

/// Returns the nanoseconds in `units` units, or panics if the nanoseconds do not fit in an `i64`.
#[track_caller]
const fn nanos(units: i64, nanos_per_unit: i64) -> i64 {
    units
        .checked_mul(nanos_per_unit)
        .expect("an `Instant` is at most 292 years from its zero")
}

impl<C: MonotonicClock> Instant<C> {
    /// Returns the duration since this time, or 0 if it is in the future.
    ///
    /// This function reads the clock `C`, even if the time came from another
    /// [`InstantSource`](crate::InstantSource), such as a mock. For such a time, write
    /// `source.now() - start`.
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
    /// The clock's zero. In an expression such as `now - Instant::EPOCH`, the compiler infers the
    /// clock from the type of `now`.
    ///
    /// The zero of `CLOCK_MONOTONIC` is the system's boot or, in a time namespace, another moment,
    /// which the offset of the namespace determines. On systems other than Linux, std's clocks
    /// answer, and the zero is the first read of the clock in the process.
    ///
    /// # Examples
    ///
    /// The seconds since the zero as a floating-point number:
    ///
    /// ```
    /// use vdso_time::{Boottime, Instant};
    ///
    /// let uptime = (Instant::now() - Instant::EPOCH).as_secs_f64();
    /// assert!((Boottime::now() - Instant::EPOCH).as_secs_f64() >= uptime);
    /// ```
    pub const EPOCH: Self = Self::from_clock_nanos(0);

    /// Creates a time of clock `C` from nanoseconds since its zero.
    ///
    /// # Examples
    ///
    /// A clock of your own creates its times with this function:
    ///
    /// ```
    /// use vdso_time::{Errno, Instant, MonotonicClock};
    ///
    /// struct Timer;
    ///
    /// impl MonotonicClock for Timer {
    ///     fn try_now() -> Result<Instant<Self>, Errno> {
    ///         let micros = 7; // for example, a hardware register
    ///         Ok(Instant::from_clock_nanos(micros * 1000))
    ///     }
    /// }
    ///
    /// assert_eq!(Timer::now().as_nanos(), 7000);
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_clock_nanos(nanos: i64) -> Self {
        Self::new(KernelTime(nanos))
    }

    /// Returns the nanoseconds since the clock's zero, negative before it.
    ///
    /// `(time - Instant::EPOCH).as_secs_f64()` returns seconds; see [`EPOCH`](Instant::EPOCH).
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

/// A clock that never goes back: its times are [`Instant`]s.
///
/// No read returns an earlier time than a read that happened before it, even in another thread.
/// `ThreadCpuTime`, and a clock whose name contains `Unordered`, as in vdso-time-counter, promise
/// this only within a thread.
///
/// The kernel's clocks that never go back are [`Monotonic`],
/// [`MonotonicCoarse`](crate::MonotonicCoarse) and, on Linux, `MonotonicRaw`, `Boottime`,
/// `ProcessCpuTime` and `ThreadCpuTime`. These types have the functions of the trait as inherent
/// functions, so import the trait only for generic code and for a clock of your own.
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
/// struct TestClock;
///
/// thread_local! {
///     static NOW: Cell<Instant<TestClock>> = const { Cell::new(Instant::EPOCH) };
/// }
///
/// impl MonotonicClock for TestClock {
///     fn try_now() -> Result<Instant<Self>, Errno> {
///         Ok(NOW.get())
///     }
/// }
///
/// let start = TestClock::now();
/// assert!(!has_expired(start));
/// NOW.set(start + Duration::from_secs(3601));
/// assert!(has_expired(start));
/// ```
///
/// A clock is a type, so the functions of this trait have no `self`, and a struct that is generic
/// over a clock needs no field for the clock. This has two drawbacks:
///
/// - A `dyn MonotonicClock` is not possible (E0038).
/// - A mock must keep its time in a static variable, which all tests share, or in a thread-local
///   variable, which the other threads of a test do not see.
///
/// To choose a clock when the program runs, or to give each test a mock of its own, use
/// [`InstantSource`](crate::InstantSource), whose functions take `&self`. You can import both
/// traits together, even if a clock of your own implements only one of them:
///
/// ```
/// # use vdso_time::{Errno, Instant};
/// use vdso_time::{InstantSource, Monotonic, MonotonicClock};
///
/// struct Turn;
///
/// impl MonotonicClock for Turn {
///     fn try_now() -> Result<Instant<Self>, Errno> {
///         Ok(Instant::EPOCH)
///     }
/// }
///
/// let source: &dyn InstantSource = &Monotonic;
/// assert_eq!(Turn::now(), Instant::EPOCH);
/// assert!(source.now() <= Instant::now());
/// ```
///
/// ```compile_fail,E0038
/// let clock: &dyn vdso_time::MonotonicClock = &vdso_time::Monotonic;
/// ```
pub trait MonotonicClock: Sized {
    /// Returns the current time, or the error of the clock.
    ///
    /// # Errors
    ///
    /// For a kernel clock, the errors of [`clock_gettime`](crate::clock_gettime).
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
            Err(error) => cannot_read::<Self>(error),
        }
    }
}
