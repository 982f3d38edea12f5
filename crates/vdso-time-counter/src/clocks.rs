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
/// The type implements `$Trait` and its value implements `$Source`. Its times are of the type
/// `$Time`, on the scale of the kernel's clock `$Scale`. `$fast` is a fast read. `$answer` returns
/// its time, or makes a slow read if it has none.
macro_rules! clock {
    (
        $(#[$doc:meta])+
        pub struct $Clock:ident: $Trait:ident, $Source:ident, $Time:ident on $Scale:ident;
        fast: $fast:expr,
        else: $answer:ident,
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
                <Self as $Trait>::now()
            }

            /// Returns the time of this clock, or the error of a sandbox.
            ///
            /// # Errors
            ///
            /// The sandbox's error, if it denies every way to read the clock.
            #[inline]
            pub fn try_now() -> Result<$Time<Self>, Errno> {
                $answer($fast)
            }
        }

        impl $Trait for $Clock {
            #[inline]
            fn try_now() -> Result<$Time<Self>, Errno> {
                Self::try_now()
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
    /// `CLOCK_MONOTONIC`, read from the counter after all earlier instructions.
    ///
    /// No time is earlier than a time that any thread read before, except as [Order](super#order)
    /// says. A thread that only compares times of its own can use [`CounterMonotonicUnordered`],
    /// which is cheaper. [`CounterRealtime::of`] returns the wall time of an instant.
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
    pub struct CounterMonotonic: MonotonicClock, InstantSource, Instant on Monotonic;
    fast: CpuCounter::ordered(|ticks| CLOCK.monotonic(|_| ticks())),
    else: instant,
}

clock! {
    /// `CLOCK_REALTIME`, read from the counter after all earlier instructions.
    ///
    /// It is the monotonic clock of this crate plus an offset. The offset is measured once and then
    /// kept, so the clock goes back only if `CLOCK_REALTIME` does, except as [Order](super#order)
    /// says. The offset is right to a fraction of the time that a read of the kernel's clocks
    /// takes: to about 5 ns if a read takes 25 ns. If `CLOCK_REALTIME` is set, or a leap second
    /// sets it back (`STA_INS`), the next segment follows it, at most 17 ms later. A step that is
    /// shorter than eight reads of the kernel's clocks, usually 200 ns, might not be followed.
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
    pub struct CounterRealtime: WallClock, SystemTimeSource, SystemTime on Realtime;
    fast: CpuCounter::ordered(|ticks| CLOCK.realtime(|_| ticks())),
    else: system_time,
}

clock! {
    /// `CLOCK_MONOTONIC`, from the cheapest read of the counter.
    ///
    /// The CPU may read the counter before it has finished earlier instructions. So no time is
    /// earlier than a time that the *same thread* read before, except as [Order](super#order) says.
    /// But a time can be some nanoseconds earlier than a time that another thread read before. The
    /// times of this clock do not mix with the times of [`CounterMonotonic`], which promises more:
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
    pub struct CounterMonotonicUnordered: MonotonicClock, InstantSource, Instant on Monotonic;
    fast: CLOCK.monotonic(Native::ticks),
    else: instant,
}

clock! {
    /// `CLOCK_REALTIME`, from the cheapest read of the counter.
    ///
    /// It has the times of [`CounterRealtime`], and the order of [`CounterMonotonicUnordered`].
    pub struct CounterRealtimeUnordered: WallClock, SystemTimeSource, SystemTime on Realtime;
    fast: CLOCK.realtime(Native::ticks),
    else: system_time,
}

impl CounterRealtime {
    /// Returns the wall time of an instant, from the present offset between the two clocks.
    ///
    /// The instant is a time of any clock on the scale of `CLOCK_MONOTONIC`: of this crate's
    /// clocks, of [`vdso_time::Monotonic`], or of another clock that is
    /// [`SameScale<Monotonic>`](SameScale).
    ///
    /// If the wall clock was set after the instant, the result is the time that it would have shown
    /// if it had been set before. For an instant from before a suspend the result is too late,
    /// because `CLOCK_MONOTONIC` stands still during a suspend.
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

/// Returns the answer of the fast read, or makes a slow read if there is none. The slow read is not
/// passed as a closure, because then it would not be inlined.
#[inline]
fn instant<C>(fast: Option<u64>) -> Result<Instant<C>, Errno> {
    if let Some(nanos) = fast {
        return Ok(Instant::from_clock_nanos(nanos as i64));
    }
    unlikely();
    let nanos = match CLOCK.slow_monotonic() {
        Some(nanos) => nanos as i64,
        None => denied(ClockId::MONOTONIC)?,
    };
    Ok(Instant::from_clock_nanos(nanos))
}

/// Returns the answer of the fast read, or makes a slow read if there is none.
#[inline]
fn system_time<C>(fast: Option<Timespec>) -> Result<SystemTime<C>, Errno> {
    if let Some(time) = fast {
        return time.try_into();
    }
    unlikely();
    let nanos = match CLOCK.slow_realtime() {
        Some(nanos) => nanos,
        None => denied(ClockId::REALTIME)?,
    };
    Ok(SystemTime::from_clock_nanos(nanos.into()))
}

/// Marks the branch that calls it as unlikely.
#[cold]
#[inline]
fn unlikely() {}

/// Returns why a clock is denied, or its time if it is not denied any more.
#[cold]
#[inline(never)]
fn denied(clock: ClockId) -> Result<i64, Errno> {
    kernel_nanos(clock)
}
