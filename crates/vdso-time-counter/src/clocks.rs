//! The clocks as types, [`CounterMonotonic`] and [`CounterRealtime`], and their cheapest reads.

use core::any::type_name;

use vdso_time::{ClockId, Errno, Instant, MonotonicClock, SystemTime, Timespec, WallClock};

use super::engine::source::Source as _;
use super::global::CLOCK;
use super::machine::arch::{Counter as _, CpuCounter};
use super::machine::{Native, kernels};

/// `CLOCK_MONOTONIC` by the counter. Its reads are ordered: no time is earlier than one that any
/// thread read before, except as [Order](super#order) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterMonotonic {}

/// `CLOCK_REALTIME` by the counter. Its reads are ordered.
///
/// # Examples
///
/// ```
/// use vdso_time_counter::{CounterMonotonic, CounterRealtime};
///
/// // Take an instant now, and its wall time when it is written.
/// let event = CounterMonotonic::now();
/// println!("{:?}", CounterRealtime::to_realtime(CounterRealtime::of(event)?));
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterRealtime {}

macro_rules! clock {
    ($Clock:ident: $Trait:ident -> $Time:ident, $answer:ident; $plain:ident, $(#[$doc:meta])+) => {
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
                <Self as $Trait>::now()
            }

            /// Returns the time of this clock, or the error of a sandbox.
            ///
            /// # Errors
            ///
            /// The sandbox's error, if it denies every way to read the clock.
            #[inline]
            pub fn try_now() -> Result<$Time<Self>, Errno> {
                $answer(CpuCounter::ordered(|ticks| CLOCK.$plain(|_| ticks())))
            }
        }

        impl $Trait for $Clock {
            #[inline]
            fn try_now() -> Result<$Time<Self>, Errno> {
                Self::try_now()
            }
        }

        $(#[$doc])+
        ///
        /// # Panics
        ///
        /// If the vDSO has to answer and a sandbox denies every way to read the clock.
        #[inline]
        #[must_use]
        #[track_caller]
        pub fn $plain() -> $Time<$Clock> {
            match $answer(CLOCK.$plain(Native::ticks)) {
                Ok(now) => now,
                Err(error) => denied::<$Clock>(error),
            }
        }
    };
}

clock! {
    CounterMonotonic: MonotonicClock -> Instant, instant; monotonic,
    /// Returns the time of `CLOCK_MONOTONIC` by the counter.
    ///
    /// It does not go back within a thread, except as [Order](super#order) says.
    /// [`CounterMonotonic::now`] does not go back across threads either.
}

clock! {
    CounterRealtime: WallClock -> SystemTime, system_time; realtime,
    /// Returns the time of `CLOCK_REALTIME` by the counter.
    ///
    /// It is the monotonic clock of this crate plus an offset, which is measured once, to about 5
    /// ns. So it goes back only if `CLOCK_REALTIME` does, except as [Order](super#order) says. If
    /// somebody sets that, or a leap second sets it back (`STA_INS`), the next segment follows, at
    /// most 17 ms later. A step of less than 1 us may not be followed.
}

impl CounterMonotonic {
    /// Converts a time of this clock, which is on the scale of `CLOCK_MONOTONIC`.
    #[inline]
    #[must_use]
    pub const fn to_monotonic(time: Instant<Self>) -> Instant {
        Instant::from_nanos(time.as_nanos())
    }
}

impl CounterRealtime {
    /// Returns the wall time of an instant, by the present offset between the two clocks.
    ///
    /// If somebody has set the wall clock since, it is the time that the clock would have had. An
    /// instant from before a suspend gets a time that is too late.
    ///
    /// # Errors
    ///
    /// The sandbox's error, if it denies every way to read the clock.
    pub fn of(instant: Instant<CounterMonotonic>) -> Result<SystemTime<Self>, Errno> {
        let offset = match CLOCK.offset() {
            Some(offset) => offset,
            // For the error of a sandbox.
            None => kernels(ClockId::REALTIME)?.saturating_sub(kernels(ClockId::MONOTONIC)?),
        };
        Ok(SystemTime::from_clock_nanos(
            instant.as_nanos().saturating_add(offset).into(),
        ))
    }

    /// Converts a time of this clock, which is on the scale of `CLOCK_REALTIME`.
    #[inline]
    #[must_use]
    pub const fn to_realtime(time: SystemTime<Self>) -> SystemTime {
        SystemTime::from_nanos(time.as_nanos())
    }
}

/// Returns the answer of a fast read, or else of a slow one. In a closure it would not be inlined.
#[inline]
fn instant(fast: Option<u64>) -> Result<Instant<CounterMonotonic>, Errno> {
    if let Some(nanos) = fast {
        return Ok(Instant::from_clock_nanos(nanos as i64));
    }
    unlikely();
    let slow = CLOCK.slow_monotonic().map(|nanos| nanos as i64);
    slow.map_or_else(|| why(ClockId::MONOTONIC), Ok)
        .map(Instant::from_clock_nanos)
}

#[inline]
fn system_time(fast: Option<Timespec>) -> Result<SystemTime<CounterRealtime>, Errno> {
    if let Some(time) = fast {
        return time.try_into();
    }
    unlikely();
    let slow = CLOCK
        .slow_realtime()
        .map_or_else(|| why(ClockId::REALTIME), Ok)?;
    Ok(SystemTime::from_clock_nanos(slow.into()))
}

/// Makes the branch that calls it an unlikely one.
#[cold]
#[inline]
fn unlikely() {}

/// Returns why a clock is denied.
#[cold]
#[inline(never)]
fn why(clock: ClockId) -> Result<i64, Errno> {
    kernels(clock)
}

#[cold]
#[inline(never)]
#[track_caller]
fn denied<C>(error: Errno) -> ! {
    panic!(
        "cannot read {}: {error} (try_now() returns this error)",
        type_name::<C>()
    )
}
