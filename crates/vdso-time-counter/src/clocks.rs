//! The clocks as types: [`CounterMonotonic`] and [`CounterRealtime`], whose reads are ordered, and
//! [`CounterMonotonicUnordered`] and [`CounterRealtimeUnordered`], whose reads are cheaper.

use vdso_time::{
    ClockId, Errno, Instant, InstantSource, Monotonic, MonotonicClock, Realtime, SameScale,
    SystemTime, SystemTimeSource, Timespec, WallClock,
};

use super::engine::source::Source as _;
use super::global::CLOCK;
use super::machine::arch::{Counter as _, CpuCounter};
use super::machine::{Native, kernel_nanos};

/// Defines a clock: the struct `$Clock` and the functions that read it.
///
/// The struct implements `$Trait`, whose functions take no `self`, and `$Source`, whose methods
/// take `&self`. Its times are of the type `$Time`, on the scale of the kernel's clock `$Scale`,
/// whose id is `$ID`. `$fast` makes a fast read, and returns `None` if a fast read cannot answer.
/// In that case `$slow` makes a slow read, and returns its nanoseconds, or `None` if a sandbox
/// denies the clock.
///
/// A slow read is a separate function that returns what its caller returns, so the caller ends with
/// a jump to it. A function that reads the clock therefore needs no stack frame and saves no
/// registers: with the slow read as a part of it, an isolated fast read took 0.6 ns longer. `cold`
/// keeps the slow read separate, and `inline` copies it into the crate that reads the clock, near
/// its callers. When the slow read was compiled as a function of this crate, its code was on
/// another page, and a read after a pause of 5 ms took 1.6 times as long.
macro_rules! clock {
    (
        $(#[$doc:meta])+
        pub struct $Clock:ident: $Trait:ident, $Source:ident;
        $Time:ident on $Scale:ident = $ID:ident,
        fast: $fast:expr,
        slow: $slow:expr,
    ) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Clock;

        impl $Clock {
            /// Returns the time of this clock.
            ///
            /// # Panics
            ///
            /// If the vDSO has to answer and a sandbox denies every way to read the clock.
            #[inline]
            #[must_use]
            #[track_caller]
            pub fn now() -> $Time<Self> {
                match $fast {
                    Some(time) => time,
                    None => Self::slow_now(),
                }
            }

            /// Returns the time of this clock, or an error if a sandbox denies it.
            ///
            /// # Errors
            ///
            /// The sandbox's error, if it denies every way to read the clock.
            #[inline]
            pub fn try_now() -> Result<$Time<Self>, Errno> {
                match $fast {
                    Some(time) => Ok(time),
                    None => Self::slow_try_now(),
                }
            }

            #[cold]
            #[inline]
            #[track_caller]
            fn slow_now() -> $Time<Self> {
                match $slow {
                    Some(nanos) => $Time::from_clock_nanos(nanos.into()),
                    // A sandbox denies the clock, so this call panics with the name of the clock.
                    None => $Source::now(&Self),
                }
            }

            #[cold]
            #[inline]
            fn slow_try_now() -> Result<$Time<Self>, Errno> {
                let nanos = match $slow {
                    Some(nanos) => nanos,
                    // A sandbox denies the clock, so this read of the kernel's clock returns the
                    // sandbox's error.
                    None => kernel_nanos(ClockId::$ID)?,
                };
                Ok($Time::from_clock_nanos(nanos.into()))
            }
        }

        impl $Trait for $Clock {
            #[inline]
            fn try_now() -> Result<$Time<Self>, Errno> {
                Self::try_now()
            }

            #[inline]
            #[track_caller]
            fn now() -> $Time<Self> {
                Self::now()
            }
        }

        impl $Source<Self> for $Clock {
            #[inline]
            fn try_now(&self) -> Result<$Time<Self>, Errno> {
                Self::try_now()
            }
        }

        impl SameScale<$Scale> for $Clock {}
    };
}

clock! {
    /// `CLOCK_MONOTONIC`, from an [ordered](super#order) read of the counter.
    ///
    /// A read never returns an earlier time than a previous read of any thread, except as
    /// [Order](super#order) says. A thread that only compares its own times can use
    /// [`CounterMonotonicUnordered`], which is cheaper. [`CounterRealtime::of`] returns the wall
    /// time of an instant.
    ///
    /// # Examples
    ///
    /// Its times convert into times of `CLOCK_MONOTONIC`, which other libraries accept:
    ///
    /// ```
    /// use vdso_time_counter::{CounterMonotonic, Duration};
    ///
    /// fn sleep_until(deadline: vdso_time::Instant) {
    ///     // ...
    /// }
    ///
    /// sleep_until((CounterMonotonic::now() + Duration::from_millis(5)).into());
    /// ```
    pub struct CounterMonotonic: MonotonicClock, InstantSource;
    Instant on Monotonic = MONOTONIC,
    fast: CpuCounter::ordered(|ticks| CLOCK.monotonic(|_| ticks())).map(instant),
    slow: CLOCK.slow_monotonic().map(|nanos| nanos as i64),
}

clock! {
    /// `CLOCK_REALTIME`, from an [ordered](super#order) read of the counter.
    ///
    /// `CounterRealtime` is the monotonic clock of this crate plus an offset. The offset is
    /// measured once and then kept, so `CounterRealtime` goes back only if `CLOCK_REALTIME` does,
    /// except as [Order](super#order) says. The offset is accurate to a fraction of the time that a
    /// read of the kernel's clocks takes: to about 5 ns if a read takes 25 ns. If `CLOCK_REALTIME`
    /// is set, or a leap second sets it back (`STA_INS`), `CounterRealtime` makes the same step at
    /// its next segment, at most 17 ms later. It might miss a step that is smaller than the time
    /// that eight reads of the kernel's clocks take, usually 200 ns. While reads are more than 1 ms
    /// apart, it might miss a step that is smaller than 1 us.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time_counter::{CounterMonotonic, CounterRealtime};
    ///
    /// // Take an instant now, and its wall time when it is written.
    /// let event = CounterMonotonic::now();
    /// println!("{:?}", CounterRealtime::of(event)?);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    pub struct CounterRealtime: WallClock, SystemTimeSource;
    SystemTime on Realtime = REALTIME,
    fast: CpuCounter::ordered(|ticks| CLOCK.realtime(|_| ticks())).and_then(wall_time),
    slow: CLOCK.slow_realtime(),
}

clock! {
    /// `CLOCK_MONOTONIC`, from the cheapest read of the counter.
    ///
    /// The CPU may read the counter before it has finished earlier instructions. So the order holds
    /// only within a thread: a read never returns an earlier time than a previous read of the *same
    /// thread*, except as [Order](super#order) says. But its time can be some nanoseconds earlier
    /// than a time that another thread has already read. The times of this clock do not mix with
    /// the times of [`CounterMonotonic`], which promises more:
    ///
    /// ```compile_fail,E0277
    /// use vdso_time_counter::{CounterMonotonic, CounterMonotonicUnordered};
    ///
    /// let mixed = CounterMonotonic::now() - CounterMonotonicUnordered::now();
    /// ```
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time_counter::{CounterMonotonicUnordered, unordered};
    ///
    /// let start: unordered::Instant = CounterMonotonicUnordered::now();
    /// println!("{:?} passed", start.elapsed()); // a cheap read as well
    /// ```
    pub struct CounterMonotonicUnordered: MonotonicClock, InstantSource;
    Instant on Monotonic = MONOTONIC,
    fast: CLOCK.monotonic(Native::ticks).map(instant),
    slow: CLOCK.slow_monotonic().map(|nanos| nanos as i64),
}

clock! {
    /// `CLOCK_REALTIME`, from the cheapest read of the counter.
    ///
    /// It has the times of [`CounterRealtime`], and the order of [`CounterMonotonicUnordered`].
    pub struct CounterRealtimeUnordered: WallClock, SystemTimeSource;
    SystemTime on Realtime = REALTIME,
    fast: CLOCK.realtime(Native::ticks).and_then(wall_time),
    slow: CLOCK.slow_realtime(),
}

impl CounterRealtime {
    /// Returns the wall time of an instant.
    ///
    /// The result is the instant plus the present offset between `CLOCK_REALTIME` and
    /// `CLOCK_MONOTONIC`.
    ///
    /// The instant is a time of any clock on the scale of `CLOCK_MONOTONIC`: of this crate's
    /// clocks, of [`vdso_time::Monotonic`], or of another clock that is
    /// [`SameScale<Monotonic>`](SameScale).
    ///
    /// If the wall clock was set after the instant, the result is the time that the wall clock
    /// would have shown at the instant if it had already been set. For an instant from before a
    /// suspend the result is too late, because `CLOCK_MONOTONIC` stands still during a suspend.
    ///
    /// # Errors
    ///
    /// The sandbox's error, if it denies every way to read the clock.
    pub fn of(instant: impl Into<Instant>) -> Result<SystemTime<Self>, Errno> {
        let instant: Instant = instant.into();
        let offset = if let Some(offset) = CLOCK.offset() {
            offset
        } else {
            // A sandbox denies a clock. These reads return its error.
            let realtime = kernel_nanos(ClockId::REALTIME)?;
            realtime.saturating_sub(kernel_nanos(ClockId::MONOTONIC)?)
        };
        Ok(SystemTime::from_clock_nanos(
            instant.as_nanos().saturating_add(offset).into(),
        ))
    }
}

#[inline]
fn instant<C>(nanos: u64) -> Instant<C> {
    Instant::from_clock_nanos(nanos as i64)
}

#[inline]
fn wall_time<C>(time: Timespec) -> Option<SystemTime<C>> {
    time.try_into().ok()
}
