//! Times whose type names their clock.
//!
//! Comparing or subtracting times of two clocks does not compile. A time is a 64-bit count of
//! nanoseconds, as in the kernel (`ktime_t`). It ends in 2262. Beyond that, operators saturate and
//! `checked` methods return `None`.
//!
//! `Instant::now` and `SystemTime::UNIX_EPOCH` exist for the default clock only. Rust does not use
//! a default type parameter for inference, so `Instant::now()` compiles only if one clock has it.
//! Other clocks have these items on their marker: `Tai::now()`, `Tai::UNIX_EPOCH`.

mod clocks;
mod convert;
mod point;
#[cfg(feature = "std")]
mod std_instant;
mod system_time;

use core::marker::PhantomData;
use core::time::Duration;

pub use clocks::{
    Boottime, Clock, KernelClock, Monotonic, MonotonicCoarse, MonotonicRaw, ProcessCpuTime, Realtime,
    RealtimeCoarse, Tai, ThreadCpuTime, WallClock,
};
use point::point_in_time;
pub use system_time::{SystemTime, SystemTimeError, UNIX_EPOCH};

/// A time of a clock that never goes back, by default [`Monotonic`].
///
/// It has the methods of `std::time::Instant`, with the same receivers. It takes 8 bytes. Operators
/// saturate. Only `now` and `elapsed` panic, if a sandbox denies every way to read the clock.
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
/// Another clock is read by its marker:
///
/// ```
/// use vdso_time::{Boottime, Clock};
///
/// let start = Boottime::now();
/// println!("{:?}, suspended time included", start.elapsed());
/// ```
///
/// Times of different clocks cannot be mixed:
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

point_in_time!(Instant, Monotonic, "CLOCK_MONOTONIC");

impl<C: Clock> Instant<C> {
    /// Returns the duration since this time, or 0 if it is in the future.
    ///
    /// # Panics
    ///
    /// If the clock cannot be read, as [`Clock::now`]. `C::try_now()?.duration_since(start)`
    /// returns the error instead.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn elapsed(&self) -> Duration {
        C::now().duration_since(*self)
    }
}

impl<C> Instant<C> {
    /// Returns the duration since `earlier`, or 0 if `earlier` is later.
    #[inline]
    #[must_use]
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

impl<C> core::ops::Sub for Instant<C> {
    type Output = Duration;

    /// Returns the same as [`duration_since`](Instant::duration_since).
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}
