//! The clocks as types, [`CounterMonotonic`] and [`CounterRealtime`], and their cheapest reads.

use vdso_time::{ClockId, Errno, Instant, MonotonicClock, SystemTime, WallClock};

use super::global::CLOCK;
use super::machine::{Native, kernels};
use super::source::Source as _;

/// Returns the time of `CLOCK_MONOTONIC` by the counter.
///
/// It is the cheapest read. It does not go back within a thread, except as [Order](super#order)
/// says. [`CounterMonotonic::now`] does not go back across threads either.
///
/// # Panics
///
/// If the vDSO has to answer and a sandbox denies every way to read the clock.
///
/// # Examples
///
/// ```
/// use vdso_time_counter as counter;
///
/// let start = counter::monotonic();
/// println!("{:?}", counter::monotonic() - start);
/// println!("{} ns since boot", start.as_nanos());
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn monotonic() -> Instant<CounterMonotonic> {
    match instant(CLOCK.monotonic(Native::ticks)) {
        Ok(now) => now,
        Err(error) => denied(error),
    }
}

/// Returns the time of `CLOCK_REALTIME` by the counter.
///
/// It is the cheapest read. It goes back only if `CLOCK_REALTIME` does, except as
/// [Order](super#order) says. If somebody sets the clock, the next segment follows, or
/// [`resync`](super::resync) makes it follow at once. A leap second is a step, too: the kernel sets
/// its clock back by a second (`STA_INS`).
///
/// # Panics
///
/// As [`monotonic`].
///
/// # Examples
///
/// ```
/// use vdso_time::Duration;
/// use vdso_time_counter::{self as counter, CounterRealtime};
///
/// let now = counter::realtime();
/// assert!(now.as_nanos() > 1_700_000_000_000_000_000);
/// println!("{:?}", CounterRealtime::to_realtime(now));
/// ```
#[inline]
#[must_use]
#[track_caller]
pub fn realtime() -> SystemTime<CounterRealtime> {
    match system_time(CLOCK.realtime(Native::ticks)) {
        Ok(now) => now,
        Err(error) => denied(error),
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn denied(error: Errno) -> ! {
    panic!("the clock cannot be read: {error}")
}

/// The answer of a fast read, or else of a slow one, or else why the kernel denies its clock.
#[inline]
fn answer<T>(fast: Option<T>, slow: impl FnOnce() -> Option<T>) -> Option<T> {
    // Not `or_else`, which the compiler does not inline.
    if fast.is_some() {
        return fast;
    }
    unlikely();
    slow()
}

#[inline]
fn instant(fast: Option<u64>) -> Result<Instant<CounterMonotonic>, Errno> {
    let Some(nanos) = answer(fast, || CLOCK.slow_monotonic()) else {
        return why(ClockId::MONOTONIC).map(Instant::from_nanos);
    };
    Ok(Instant::from_nanos(nanos as i64))
}

#[inline]
fn system_time(fast: Option<i64>) -> Result<SystemTime<CounterRealtime>, Errno> {
    let Some(nanos) = answer(fast, || CLOCK.slow_realtime()) else {
        return why(ClockId::REALTIME).map(SystemTime::from_nanos);
    };
    Ok(SystemTime::from_nanos(nanos))
}

/// Makes the branch that calls it an unlikely one.
#[cold]
#[inline]
fn unlikely() {}

/// Reads a clock again that was denied, for the error.
#[cold]
#[inline(never)]
fn why(clock: ClockId) -> Result<i64, Errno> {
    kernels(clock)
}

/// `CLOCK_MONOTONIC` by the counter. Its reads are ordered: no time is earlier than one that any
/// thread read before, except as [Order](super#order) says.
///
/// # Examples
///
/// ```
/// use std::thread;
/// use vdso_time_counter::CounterMonotonic;
///
/// let here = CounterMonotonic::now();
/// let there = thread::spawn(CounterMonotonic::now).join().unwrap();
/// assert!(here <= there);
/// println!("{:?}", here.elapsed());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterMonotonic {}

impl CounterMonotonic {
    /// Returns the time of this clock.
    ///
    /// # Panics
    ///
    /// As [`monotonic`].
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn now() -> Instant<Self> {
        <Self as MonotonicClock>::now()
    }

    /// Returns the time of this clock, or the error of a sandbox.
    ///
    /// # Errors
    ///
    /// The sandbox's error, if it denies every way to read the clock.
    #[inline]
    pub fn try_now() -> Result<Instant<Self>, Errno> {
        instant(CLOCK.monotonic_ordered())
    }

    /// Converts a time of this clock, which is on the scale of `CLOCK_MONOTONIC`.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::Instant;
    /// use vdso_time_counter::CounterMonotonic;
    ///
    /// let start: Instant = CounterMonotonic::to_monotonic(CounterMonotonic::now());
    /// println!("{:?}", start.elapsed());
    /// ```
    #[inline]
    #[must_use]
    pub const fn to_monotonic(time: Instant<Self>) -> Instant {
        Instant::from_nanos(time.as_nanos())
    }
}

impl MonotonicClock for CounterMonotonic {
    #[inline]
    fn try_now() -> Result<Instant<Self>, Errno> {
        Self::try_now()
    }
}

/// `CLOCK_REALTIME` by the counter. Its reads are ordered.
///
/// # Examples
///
/// ```
/// use vdso_time::SystemTime;
/// use vdso_time_counter::{CounterMonotonic, CounterRealtime};
///
/// // Take an instant now, and its wall time when it is written.
/// let event = CounterMonotonic::now();
/// let at: SystemTime<CounterRealtime> = CounterRealtime::of(event)?;
/// println!("{:?}", CounterRealtime::to_realtime(at));
/// # Ok::<(), vdso_time::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterRealtime {}

impl CounterRealtime {
    /// Returns the time of this clock.
    ///
    /// # Panics
    ///
    /// As [`monotonic`].
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn now() -> SystemTime<Self> {
        <Self as WallClock>::now()
    }

    /// Returns the time of this clock, or the error of a sandbox.
    ///
    /// # Errors
    ///
    /// The sandbox's error, if it denies every way to read the clock.
    #[inline]
    pub fn try_now() -> Result<SystemTime<Self>, Errno> {
        system_time(CLOCK.realtime_ordered())
    }

    /// Returns the wall time of an instant, by the present offset between the two clocks.
    ///
    /// If somebody has set the wall clock since the instant, it is the time that the clock would
    /// have had. The wall time advances while the system is suspended and the instant does not, so
    /// an instant from before a suspend gets a time that is too late.
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
        Ok(SystemTime::from_nanos(instant.as_nanos().saturating_add(offset)))
    }

    /// Converts a time of this clock, which is on the scale of `CLOCK_REALTIME`.
    #[inline]
    #[must_use]
    pub fn to_realtime(time: SystemTime<Self>) -> SystemTime {
        match time.duration_since(Self::UNIX_EPOCH) {
            Ok(after) => SystemTime::UNIX_EPOCH + after,
            Err(before) => SystemTime::UNIX_EPOCH - before.duration(),
        }
    }
}

impl WallClock for CounterRealtime {
    #[inline]
    fn try_now() -> Result<SystemTime<Self>, Errno> {
        Self::try_now()
    }
}
