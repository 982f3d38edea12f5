//! A clock for governor's rate limiters: `RateLimiter::direct_with_clock(quota, CounterClock)`.

use governor::clock::{Clock, ReasonablyRealtime};
use governor::nanos::Nanos;

/// `CLOCK_MONOTONIC`, read from the CPU's counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterClock;

impl Clock for CounterClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        vdso_time::counter::monotonic().into()
    }
}

impl ReasonablyRealtime for CounterClock {}
