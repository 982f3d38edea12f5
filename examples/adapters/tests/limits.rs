//! A limiter on these clocks allows what its quota says, and never too early by the kernel's clock.

use std::num::NonZeroU32;
use std::thread;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use vdso_time::{ClockId, syscall};
use vdso_time_adapters::governor_clock::{CounterClock, MonotonicClock};

type Limiter<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<Nanos>>;

const PERIOD: Duration = Duration::from_millis(10);

/// The error of the counter's rate in the duration of a test.
const SLACK: Duration = Duration::from_micros(100);

fn kernel() -> Duration {
    let now = syscall::clock_gettime(ClockId::MONOTONIC).expect("the kernel has this clock");
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).expect("less than a second"))
}

fn limiter<C: Clock<Instant = Nanos>>(clock: C, quota: Quota) -> Limiter<C> {
    RateLimiter::direct_with_clock(quota, clock)
}

fn five() -> NonZeroU32 {
    NonZeroU32::new(5).expect("it is not 0")
}

/// A burst of five is let through, and the next comes when its time has.
fn limits<C: Clock<Instant = Nanos> + Clone>(clock: &C) {
    let hourly = limiter(clock.clone(), Quota::per_hour(five()));
    assert_eq!((0..8).filter(|_| hourly.check().is_ok()).count(), 5);

    let quota = Quota::with_period(PERIOD).expect("it is not 0").allow_burst(five());
    let before = kernel();
    let limiter = limiter(clock.clone(), quota);
    let mut passed = 0;
    // Sleeps as long as the limiter says, until it has allowed the burst and eight more.
    while passed < 13 {
        match limiter.check() {
            Ok(()) => passed += 1,
            Err(refusal) => thread::sleep(refusal.wait_time_from(clock.now())),
        }
    }
    let taken = kernel().saturating_sub(before);
    assert!(taken + SLACK >= 8 * PERIOD, "{taken:?}");
}

#[test]
fn by_the_vdso() {
    limits(&MonotonicClock);
}

#[test]
fn by_the_counter() {
    limits(&CounterClock);
}
