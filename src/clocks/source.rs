//! [`InstantSource`] and [`SystemTimeSource`]: a clock that is a value.

#[cfg(feature = "std")]
use std::{boxed::Box, sync::Arc};

use super::common::cannot_read;
use super::kernel::{Monotonic, Realtime};
use super::monotonic::Instant;
use super::wall::SystemTime;
use crate::errno::Errno;

/// A clock that is a value. Its `now()` returns an [`Instant<S>`](Instant), which is a time of
/// clock `S`.
///
/// A [`MonotonicClock`] is a type, which a program chooses when it is compiled. An `InstantSource`
/// is a value, which a program chooses when it runs: it can be a `dyn InstantSource`, and each test
/// can have a mock of its own, whose time all threads of the test see.
///
/// The clocks of this crate are also values: [`Monotonic`] is an `InstantSource`, and
/// [`MonotonicCoarse`] is an `InstantSource<MonotonicCoarse>`. References to sources are sources as
/// well, and so are `Box` and `Arc` with the feature `std`.
///
/// [`Instant::elapsed`] reads clock `S`, and never a source. So if a mock is an `InstantSource`
/// with the default `S`, `start.elapsed()` compiles, but reads the kernel's clock and not the mock.
/// Write `clock.now() - start`, or give the mock a type of your own for `S`, as the second example
/// does.
///
/// [`MonotonicClock`]: crate::MonotonicClock
/// [`MonotonicCoarse`]: crate::MonotonicCoarse
///
/// # Examples
///
/// A struct that is generic over its clock `C` needs the bound `C: InstantSource<C>`, because the
/// times of this clock are of the type `Instant<C>`:
///
/// ```
/// use vdso_time::{Duration, Instant, InstantSource, MonotonicCoarse};
///
/// struct Pause<C> {
///     clock: C,
///     end: Instant<C>,
/// }
///
/// impl<C: InstantSource<C>> Pause<C> {
///     fn new(clock: C, length: Duration) -> Self {
///         let end = clock.now() + length;
///         Self { clock, end }
///     }
///
///     fn is_over(&self) -> bool {
///         self.clock.now() >= self.end
///     }
/// }
///
/// assert!(Pause::new(MonotonicCoarse, Duration::ZERO).is_over());
/// ```
///
/// All clocks behind a `dyn InstantSource<S>` return times of the same `S`. In this example, a
/// program chooses between two clocks and a mock, and `S` is `AppTime`, a type that the program
/// defines. A call of `elapsed()` does not compile, because `AppTime` does not implement
/// `MonotonicClock`:
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use vdso_time::{Duration, Errno, Instant, InstantSource, Monotonic, MonotonicCoarse};
///
/// struct AppTime;
///
/// struct Lease {
///     clock: Arc<dyn InstantSource<AppTime> + Send + Sync>,
///     end: Instant<AppTime>,
/// }
///
/// impl Lease {
///     fn has_expired(&self) -> bool {
///         self.clock.now() >= self.end
///     }
/// }
///
/// /// A clock of the running program.
/// impl InstantSource<AppTime> for Monotonic {
///     fn try_now(&self) -> Result<Instant<AppTime>, Errno> {
///         Ok(Instant::from_clock_nanos(Monotonic::try_now()?.as_nanos()))
///     }
/// }
///
/// /// The other clock of the running program.
/// impl InstantSource<AppTime> for MonotonicCoarse {
///     fn try_now(&self) -> Result<Instant<AppTime>, Errno> {
///         Ok(Instant::from_clock_nanos(MonotonicCoarse::try_now()?.as_nanos()))
///     }
/// }
///
/// /// The clock of a test.
/// struct Mock(Mutex<Instant<AppTime>>);
///
/// impl InstantSource<AppTime> for Mock {
///     fn try_now(&self) -> Result<Instant<AppTime>, Errno> {
///         Ok(*self.0.lock().unwrap())
///     }
/// }
///
/// let mock = Arc::new(Mock(Mutex::new(Instant::EPOCH)));
/// let end = mock.now() + Duration::from_secs(3600);
/// let lease = Lease { clock: mock.clone(), end };
/// assert!(!lease.has_expired());
/// *mock.0.lock().unwrap() += Duration::from_secs(3601);
/// std::thread::scope(|scope| {
///     assert!(scope.spawn(|| lease.has_expired()).join().unwrap());
/// });
///
/// # let is_precise = true;
/// let mut lease = Lease { clock: Arc::new(MonotonicCoarse), end };
/// if is_precise {
///     lease.clock = Arc::new(Monotonic);
/// }
/// # _ = lease.has_expired();
/// ```
///
/// ```compile_fail,E0599
/// # use vdso_time::{Duration, Instant};
/// # struct AppTime;
/// fn age(start: Instant<AppTime>) -> Duration {
///     start.elapsed() // of which clock? use clock.now() - start
/// }
/// ```
pub trait InstantSource<S = Monotonic> {
    /// Returns the current time, or the error of the clock.
    ///
    /// # Errors
    ///
    /// For a kernel clock, the errors of [`clock_gettime`](crate::clock_gettime).
    fn try_now(&self) -> Result<Instant<S>, Errno>;

    /// Returns the current time.
    ///
    /// # Panics
    ///
    /// If `try_now` returns an error.
    #[inline]
    #[must_use]
    #[track_caller]
    fn now(&self) -> Instant<S> {
        match self.try_now() {
            Ok(now) => now,
            Err(error) => cannot_read::<Self>(error),
        }
    }
}

/// A clock that is a value. Its `now()` returns a [`SystemTime<S>`](SystemTime), which is a time of
/// the wall clock `S`.
///
/// It is to [`WallClock`](crate::WallClock) what [`InstantSource`] is to
/// [`MonotonicClock`](crate::MonotonicClock). Here as well, [`SystemTime::elapsed`] never reads a
/// source, generic code needs the bound `SystemTimeSource<C>`, and all clocks behind a
/// `dyn SystemTimeSource<S>` return times of the same `S`.
///
/// # Examples
///
/// ```
/// use vdso_time::{Errno, Realtime, SystemTime, SystemTimeSource};
///
/// fn is_leap_day(clock: &dyn SystemTimeSource) -> bool {
///     clock.now().as_secs() / 86_400 == 19_782 // 2024-02-29
/// }
///
/// struct Fixed(SystemTime);
///
/// impl SystemTimeSource for Fixed {
///     fn try_now(&self) -> Result<SystemTime, Errno> {
///         Ok(self.0)
///     }
/// }
///
/// assert!(is_leap_day(&Fixed(SystemTime::from_secs(1_709_200_000))));
/// assert!(!is_leap_day(&Realtime));
/// ```
pub trait SystemTimeSource<S = Realtime> {
    /// Returns the current time, or the error of the clock.
    ///
    /// # Errors
    ///
    /// For a kernel clock, the errors of [`clock_gettime`](crate::clock_gettime).
    fn try_now(&self) -> Result<SystemTime<S>, Errno>;

    /// Returns the current time.
    ///
    /// # Panics
    ///
    /// If `try_now` returns an error.
    #[inline]
    #[must_use]
    #[track_caller]
    fn now(&self) -> SystemTime<S> {
        match self.try_now() {
            Ok(now) => now,
            Err(error) => cannot_read::<Self>(error),
        }
    }
}

// Each clock has its own implementation of `InstantSource` or `SystemTimeSource`. We tried one
// implementation for all clocks, `impl<C: MonotonicClock> InstantSource<C> for C`. With it, a call
// of `Turn::now()`, where `Turn` is a user's own clock, was ambiguous as soon as both traits were
// imported (E0034). A user's implementation of `InstantSource` for a reference to a mock conflicted
// with ours (E0119).

/// Implements the trait for a pointer to a source.
macro_rules! pointers {
    ($Source:ident -> $Time:ident: $($Pointer:ty),+) => {$(
        impl<S, T: $Source<S> + ?Sized> $Source<S> for $Pointer {
            #[inline]
            fn try_now(&self) -> Result<$Time<S>, Errno> {
                (**self).try_now()
            }

            #[inline]
            #[track_caller]
            fn now(&self) -> $Time<S> {
                (**self).now()
            }
        }
    )+};
}

pointers!(InstantSource -> Instant: &T);
pointers!(SystemTimeSource -> SystemTime: &T);

#[cfg(feature = "std")]
pointers!(InstantSource -> Instant: Box<T>, Arc<T>);
#[cfg(feature = "std")]
pointers!(SystemTimeSource -> SystemTime: Box<T>, Arc<T>);
