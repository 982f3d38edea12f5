//! Marker types for the kernel's clocks, and the traits with which a program adds its own.

use core::time::Duration;

use super::{Instant, SystemTime};
use crate::errno::Errno;
use crate::system::calls::{clock_getres, clock_gettime};
use crate::types::ClockId;

/// A clock that never goes back.
///
/// The kernel's are [`Monotonic`], [`MonotonicRaw`], [`MonotonicCoarse`], [`Boottime`],
/// [`ProcessCpuTime`] and [`ThreadCpuTime`]. A program can add its own, for example a simulated one
/// for its tests, by implementing `try_now`.
///
/// # Examples
///
/// ```
/// use vdso_time::{Clock, Errno, Instant};
///
/// enum Frozen {}
///
/// impl Clock for Frozen {
///     fn try_now() -> Result<Instant<Self>, Errno> {
///         Ok(Instant::from_nanos(42))
///     }
/// }
///
/// fn work<C: Clock>() -> std::time::Duration {
///     C::now().elapsed()
/// }
///
/// assert!(work::<Frozen>().is_zero());
/// println!("{:?}", work::<vdso_time::Monotonic>());
/// ```
pub trait Clock: Sized {
    /// Returns the current time, or the error of the clock.
    ///
    /// # Errors
    ///
    /// For a kernel clock, the error of the kernel or of a sandbox that denies every read.
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
            Err(error) => refused(error),
        }
    }
}

/// A clock that can be set.
///
/// The kernel's are [`Realtime`], [`RealtimeCoarse`] and [`Tai`]. A program can add its own by
/// implementing `try_now`.
///
/// # Examples
///
/// ```
/// use vdso_time::{SystemTime, Tai, WallClock};
///
/// let now: SystemTime<Tai> = Tai::now();
/// assert!(now > Tai::UNIX_EPOCH);
/// ```
pub trait WallClock: Sized {
    /// The clock's zero: 1970-01-01 00:00:00 on its own scale.
    const UNIX_EPOCH: SystemTime<Self> = SystemTime::from_nanos(0);

    /// Returns the current time, or the error of the clock.
    ///
    /// # Errors
    ///
    /// For a kernel clock, the error of the kernel or of a sandbox that denies every read.
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
            Err(error) => refused(error),
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn refused(error: Errno) -> ! {
    panic!("the clock cannot be read: {error}")
}

/// A kernel clock, which has an id.
///
/// # Examples
///
/// A marker for another kernel clock:
///
/// ```
/// use vdso_time::{Clock, ClockId, Errno, Instant, KernelClock, clock_gettime};
///
/// /// Auxiliary clock 0, since Linux 6.17.
/// enum Aux0 {}
///
/// impl KernelClock for Aux0 {
///     const ID: ClockId = ClockId::aux(0);
/// }
///
/// impl Clock for Aux0 {
///     fn try_now() -> Result<Instant<Self>, Errno> {
///         clock_gettime(Self::ID).map(|time| Instant::from_nanos(time.as_nanos()))
///     }
/// }
///
/// println!("{:?}", Aux0::try_now());
/// ```
pub trait KernelClock {
    /// The clock's id.
    const ID: ClockId;

    /// Returns the clock's resolution (clock_getres(2)).
    ///
    /// It is 1 ns, or the length of a timer tick for a coarse clock (1 to 10 ms). It is neither the
    /// cost of a read nor the accuracy of the clock.
    ///
    /// # Errors
    ///
    /// Those of [`clock_getres`].
    #[inline]
    fn resolution() -> Result<Duration, Errno> {
        Duration::try_from(clock_getres(Self::ID)?)
    }
}

macro_rules! clocks {
    ($($(#[$doc:meta])* $Marker:ident: $Trait:ident -> $Point:ident = $id:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Marker {}

        impl KernelClock for $Marker {
            const ID: ClockId = ClockId::$id;
        }

        impl $Trait for $Marker {
            #[inline]
            fn try_now() -> Result<$Point<Self>, Errno> {
                clock_gettime(Self::ID).map(|time| $Point::from_nanos(time.ktime()))
            }
        }
    )*};
}

clocks! {
    /// `CLOCK_MONOTONIC`: slewed by NTP, never set. It stops while the system is suspended.
    Monotonic: Clock -> Instant = MONOTONIC;
    /// `CLOCK_MONOTONIC_RAW`: the hardware's own rate, not slewed. It stops while the system is
    /// suspended.
    MonotonicRaw: Clock -> Instant = MONOTONIC_RAW;
    /// `CLOCK_MONOTONIC_COARSE`: `CLOCK_MONOTONIC` at the last timer tick, at most 10 ms ago.
    ///
    /// A read does not read the hardware counter. Its times convert `into` an [`Instant`].
    MonotonicCoarse: Clock -> Instant = MONOTONIC_COARSE;
    /// `CLOCK_BOOTTIME`: `CLOCK_MONOTONIC` that also counts while the system is suspended.
    Boottime: Clock -> Instant = BOOTTIME;
    /// `CLOCK_PROCESS_CPUTIME_ID`: the CPU time that all threads of this process used.
    ///
    /// A read is a system call. A forked child begins at 0, so its parent's times are in its
    /// future.
    ProcessCpuTime: Clock -> Instant = PROCESS_CPUTIME;
    /// `CLOCK_THREAD_CPUTIME_ID`: the CPU time that the calling thread used.
    ///
    /// A read is a system call. Each thread has its own clock, so times of two threads cannot be
    /// compared.
    ThreadCpuTime: Clock -> Instant = THREAD_CPUTIME;
    /// `CLOCK_REALTIME`: the wall clock, UTC without leap seconds. It can step, and it counts while
    /// the system is suspended.
    Realtime: WallClock -> SystemTime = REALTIME;
    /// `CLOCK_REALTIME_COARSE`: `CLOCK_REALTIME` at the last timer tick, at most 10 ms ago.
    ///
    /// A read does not read the hardware counter. Its times convert `into` a [`SystemTime`].
    RealtimeCoarse: WallClock -> SystemTime = REALTIME_COARSE;
    /// `CLOCK_TAI`: International Atomic Time, which counts leap seconds.
    ///
    /// It is the same as `CLOCK_REALTIME` until NTP sets its offset. It can step.
    Tai: WallClock -> SystemTime = TAI;
}
