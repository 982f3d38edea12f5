//! The clocks, as types: the markers of the kernel's, and the traits by which anybody adds another.

use core::time::Duration;

use super::{Instant, SystemTime};
use crate::errno::Errno;
use crate::linux::calls::{clock_getres, clock_gettime};
use crate::types::ClockId;

/// A clock that never goes back, as a type.
///
/// The kernel's are [`Monotonic`], [`MonotonicRaw`], [`MonotonicCoarse`], [`Boottime`],
/// [`ProcessCpuTime`] and [`ThreadCpuTime`]. A program may add its own, for example a simulated one
/// for its tests. It implements one method.
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
    /// Returns the time now.
    ///
    /// # Errors
    ///
    /// What the kernel, or a sandbox, answered.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Boottime, Clock};
    ///
    /// println!("up for {} s", Boottime::try_now()?.as_nanos() / 1_000_000_000);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    fn try_now() -> Result<Instant<Self>, Errno>;

    /// Returns the time now.
    ///
    /// # Panics
    ///
    /// If the clock cannot be read. A clock of the kernel's cannot be read if a sandbox denies
    /// every way to read it.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Boottime, Clock};
    ///
    /// let start = Boottime::now();
    /// println!("{:?}", start.elapsed());
    /// ```
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

/// A clock that people set, as a type.
///
/// The kernel's are [`Realtime`], [`RealtimeCoarse`] and [`Tai`]. A program may add its own. It
/// implements one method.
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
    /// 1970-01-01 00:00:00 on the clock's own scale, its zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{RealtimeCoarse, WallClock};
    ///
    /// let since_epoch = RealtimeCoarse::now().duration_since(RealtimeCoarse::UNIX_EPOCH)?;
    /// assert!(since_epoch.as_secs() > 1_700_000_000);
    /// # Ok::<(), vdso_time::SystemTimeError>(())
    /// ```
    const UNIX_EPOCH: SystemTime<Self> = SystemTime::from_nanos(0);

    /// Returns the time now.
    ///
    /// # Errors
    ///
    /// What the kernel, or a sandbox, answered.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{RealtimeCoarse, WallClock};
    ///
    /// println!("{:?}", RealtimeCoarse::try_now()?);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    fn try_now() -> Result<SystemTime<Self>, Errno>;

    /// Returns the time now.
    ///
    /// # Panics
    ///
    /// If the clock cannot be read. A clock of the kernel's cannot be read if a sandbox denies
    /// every way to read it.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{Tai, WallClock};
    ///
    /// println!("{:?}", Tai::now());
    /// ```
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

/// A clock of the kernel's, as a type: one that has a number.
///
/// # Examples
///
/// A marker for a clock that has none here:
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
    /// The clock's number.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{ClockId, KernelClock, Tai};
    ///
    /// assert_eq!(Tai::ID, ClockId::TAI);
    /// ```
    const ID: ClockId;

    /// Returns the clock's resolution: clock_getres(2).
    ///
    /// It is 1 ns, or the length of a timer tick for a coarse clock (1 to 10 ms). It is not what a
    /// read costs, and says nothing of how true the clock is.
    ///
    /// # Errors
    ///
    /// Those of [`clock_getres`].
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::{KernelClock, MonotonicCoarse};
    ///
    /// println!("the coarse clocks turn every {:?}", MonotonicCoarse::resolution()?);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    #[inline]
    fn resolution() -> Result<Duration, Errno> {
        Duration::try_from(clock_getres(Self::ID)?)
    }
}

macro_rules! clocks {
    ($($(#[$doc:meta])* $Marker:ident: $Trait:ident -> $Point:ident = $id:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Examples
        ///
        #[doc = concat!("```\nuse vdso_time::{", stringify!($Marker), ", ", stringify!($Trait), "};\n")]
        #[doc = concat!("println!(\"{:?}\", ", stringify!($Marker), "::now());")]
        /// ```
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
    /// `CLOCK_MONOTONIC`: slewed by NTP, never set. It stands still while the system is suspended.
    Monotonic: Clock -> Instant = MONOTONIC;
    /// `CLOCK_MONOTONIC_RAW`: the hardware's own rate, not slewed. It stands still while the system
    /// is suspended.
    MonotonicRaw: Clock -> Instant = MONOTONIC_RAW;
    /// `CLOCK_MONOTONIC_COARSE`: `CLOCK_MONOTONIC` at the last timer tick, 1 to 10 ms ago, for the
    /// price of two loads. Its times convert `into` an [`Instant`]. It stands still while the
    /// system is suspended.
    MonotonicCoarse: Clock -> Instant = MONOTONIC_COARSE;
    /// `CLOCK_BOOTTIME`: `CLOCK_MONOTONIC`, and it goes on while the system is suspended.
    Boottime: Clock -> Instant = BOOTTIME;
    /// `CLOCK_PROCESS_CPUTIME_ID`: the CPU time that all threads of this process used
    /// (clock_gettime(2)).
    ///
    /// `elapsed` returns the CPU time used since. A read is a system call. A forked child begins
    /// at 0, so a time of its parent's lies ahead of it.
    ProcessCpuTime: Clock -> Instant = PROCESS_CPUTIME;
    /// `CLOCK_THREAD_CPUTIME_ID`: the CPU time that the calling thread used (clock_gettime(2)).
    ///
    /// `elapsed` returns the CPU time used since. A read is a system call. Each thread has a clock
    /// of its own: a time that another thread took says nothing here.
    ThreadCpuTime: Clock -> Instant = THREAD_CPUTIME;
    /// `CLOCK_REALTIME`: the wall clock, UTC without a name for leap seconds. It can step, and it
    /// goes on while the system is suspended.
    Realtime: WallClock -> SystemTime = REALTIME;
    /// `CLOCK_REALTIME_COARSE`: `CLOCK_REALTIME` at the last timer tick, 1 to 10 ms ago, for the
    /// price of two loads. Its times convert `into` a [`SystemTime`].
    RealtimeCoarse: WallClock -> SystemTime = REALTIME_COARSE;
    /// `CLOCK_TAI`: International Atomic Time, if NTP has told the kernel its offset; else it is
    /// `CLOCK_REALTIME`. It has every leap second, goes on while the system is suspended, and can
    /// step.
    Tai: WallClock -> SystemTime = TAI;
}
