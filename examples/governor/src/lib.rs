//! vdso-time's clocks for [governor](https://docs.rs/governor)'s rate limiters.

use std::ops::Add;

use governor::clock::{Clock, ReasonablyRealtime, Reference};
use governor::nanos::Nanos;
use vdso_time::{Instant, counter};

/// `CLOCK_MONOTONIC` through the vDSO.
#[derive(Clone, Copy, Debug, Default)]
pub struct VdsoClock;

/// `CLOCK_MONOTONIC`, read from the CPU's counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterClock;

/// A time of one of the clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Add<Nanos> for Moment {
    type Output = Self;

    fn add(self, other: Nanos) -> Self {
        Self(self.0.saturating_add(other.as_u64()))
    }
}

impl Reference for Moment {
    fn duration_since(&self, earlier: Self) -> Nanos {
        self.0.saturating_sub(earlier.0).into()
    }

    fn saturating_sub(&self, duration: Nanos) -> Self {
        Self(self.0.checked_sub(duration.as_u64()).unwrap_or(self.0))
    }
}

impl Clock for VdsoClock {
    type Instant = Moment;

    fn now(&self) -> Moment {
        Moment(Instant::now().as_nanos().unsigned_abs())
    }
}

impl Clock for CounterClock {
    type Instant = Moment;

    fn now(&self) -> Moment {
        Moment(counter::monotonic())
    }
}

impl ReasonablyRealtime for VdsoClock {}
impl ReasonablyRealtime for CounterClock {}
