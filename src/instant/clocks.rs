//! The clocks, as types: the markers of the kernel's, and the traits by which anybody adds another.

use super::{Instant, SystemTime};
use crate::error::Errno;
use crate::linux::calls::clock_gettime;
use crate::types::ClockId;

/// A clock that never goes back, as a type. The kernel's are [`Monotonic`], [`MonotonicRaw`], [`MonotonicCoarse`] and
/// [`Boottime`]; a program may add its own, a simulated one for its tests, say.
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
    /// The time now.
    ///
    /// # Errors
    /// What the kernel, or a sandbox, answered.
    fn try_now() -> Result<Instant<Self>, Errno>;

    /// The time now.
    ///
    /// # Panics
    /// If the clock cannot be read: for a clock of the kernel's, if a sandbox denies every way to read it.
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

/// A clock that people set, as a type. The kernel's are [`Realtime`], [`RealtimeCoarse`] and [`Tai`]; a program may add its
/// own.
///
/// ```
/// use vdso_time::{SystemTime, Tai, WallClock};
///
/// let now: SystemTime<Tai> = Tai::now();
/// assert!(now > SystemTime::UNIX_EPOCH);
/// ```
pub trait WallClock: Sized {
    /// The time now.
    ///
    /// # Errors
    /// What the kernel, or a sandbox, answered.
    fn try_now() -> Result<SystemTime<Self>, Errno>;

    /// The time now.
    ///
    /// # Panics
    /// If the clock cannot be read: for a clock of the kernel's, if a sandbox denies every way to read it.
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

macro_rules! clocks {
    ($($(#[$doc:meta])* $Marker:ident: $Trait:ident -> $Point:ident = $id:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $Marker {}

        impl $Trait for $Marker {
            #[inline]
            fn try_now() -> Result<$Point<Self>, Errno> {
                clock_gettime(ClockId::$id).map(|time| $Point::from_nanos(time.ktime()))
            }
        }
    )*};
}

clocks! {
    /// `CLOCK_MONOTONIC`: slewed by NTP, never set. It stands still while the system is suspended.
    Monotonic: Clock -> Instant = MONOTONIC;
    /// `CLOCK_MONOTONIC_RAW`: the hardware's own rate, not slewed. It stands still while the system is suspended.
    MonotonicRaw: Clock -> Instant = MONOTONIC_RAW;
    /// `CLOCK_MONOTONIC_COARSE`: `CLOCK_MONOTONIC` at the last timer tick, 1 to 10 ms ago, for the price of two loads. It
    /// stands still while the system is suspended.
    MonotonicCoarse: Clock -> Instant = MONOTONIC_COARSE;
    /// `CLOCK_BOOTTIME`: `CLOCK_MONOTONIC`, and it goes on while the system is suspended.
    Boottime: Clock -> Instant = BOOTTIME;
    /// `CLOCK_REALTIME`: the wall clock, UTC without a name for leap seconds. It can step, and it goes on while the
    /// system is suspended.
    Realtime: WallClock -> SystemTime = REALTIME;
    /// `CLOCK_REALTIME_COARSE`: `CLOCK_REALTIME` at the last timer tick, 1 to 10 ms ago, for the price of two loads.
    RealtimeCoarse: WallClock -> SystemTime = REALTIME_COARSE;
    /// `CLOCK_TAI`: International Atomic Time, if NTP has told the kernel its offset; else it is `CLOCK_REALTIME`. It has
    /// every leap second, goes on while the system is suspended, and can step.
    Tai: WallClock -> SystemTime = TAI;
}
