//! Clocks for governor's rate limiters: `RateLimiter::direct_with_clock(quota, MonotonicClock)`.

use governor::clock::{Clock, ReasonablyRealtime};
use governor::nanos::Nanos;

/// `CLOCK_MONOTONIC` through the vDSO.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        vdso_time::Instant::now().as_nanos().unsigned_abs().into()
    }
}

impl ReasonablyRealtime for MonotonicClock {}

/// `CLOCK_MONOTONIC`, read from the CPU's counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterClock;

impl Clock for CounterClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        (vdso_time_counter::monotonic().as_nanos() as u64).into()
    }
}

impl ReasonablyRealtime for CounterClock {}
