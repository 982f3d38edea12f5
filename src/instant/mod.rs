//! Times that know their clock.
//!
//! An [`Instant<Boottime>`](Boottime) and an [`Instant<Monotonic>`](Monotonic) cannot be compared
//! or subtracted: it does not compile. Each is one 64-bit count of nanoseconds, as the kernel keeps
//! it (`ktime_t`), which ends in 2262. Operators saturate beyond that, and methods whose name says
//! `checked` return `None`.
//!
//! What std has, and takes without a clock in its type (`now`, `UNIX_EPOCH`), is there for the
//! default clock alone: a default parameter is not used where a type is inferred, so
//! `Instant::now()` and `SystemTime::UNIX_EPOCH.elapsed()` compile because only one clock has them.
//! Other clocks have them on their marker: `Tai::now()`, `Tai::UNIX_EPOCH`.

mod clocks;
mod convert;
mod point;
#[cfg(feature = "std")]
mod std_instant;
mod system_time;

use core::marker::PhantomData;
use core::time::Duration;

use crate::errno::Errno;
pub use clocks::{
    Boottime, Clock, KernelClock, Monotonic, MonotonicCoarse, MonotonicRaw, ProcessCpuTime, Realtime,
    RealtimeCoarse, Tai, ThreadCpuTime, WallClock,
};
use point::point_in_time;
pub use system_time::{SystemTime, SystemTimeError, UNIX_EPOCH};

/// A time of a clock that never goes back; [`Monotonic`] unless another one is named.
///
/// Its methods are those of `std::time::Instant`, with the same receivers. It is 8 bytes, the
/// operators saturate, and two methods panic: `now` and `elapsed`, if a sandbox denies every way to
/// read the clock.
///
/// # Examples
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

point_in_time!(Instant);

impl Instant {
    /// Returns the time of `CLOCK_MONOTONIC`.
    ///
    /// # Panics
    ///
    /// If a sandbox denies every way to read the clock.
    ///
    /// # Examples
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

    /// Returns the time of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    ///
    /// What the sandbox answered, if it denies every way to read the clock.
    ///
    /// # Examples
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
    /// Returns how long ago this was; 0 if it is yet to come.
    ///
    /// # Panics
    ///
    /// If the clock cannot be read, as [`Clock::now`]. `C::try_now()?.duration_since(start)`
    /// returns the error instead.
    ///
    /// # Examples
    ///
    /// ```
    /// let start = vdso_time::Instant::now();
    /// assert!(start.elapsed().as_secs() < 3600);
    /// ```
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn elapsed(&self) -> Duration {
        C::now().duration_since(*self)
    }
}

impl<C> Instant<C> {
    /// Returns how much later this is than `earlier`; 0 if it is not.
    ///
    /// # Examples
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
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

impl<C> core::ops::Sub for Instant<C> {
    type Output = Duration;

    /// Returns what [`duration_since`](Instant::duration_since) does.
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}
