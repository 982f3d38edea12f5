//! A limiter on these clocks allows what its quota says, and never too early by the kernel's clock.

use std::num::NonZeroU32;
use std::thread;
use std::time::Duration;

use governor::clock::{Clock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use governor_clocks::{CounterClock, Moment, VdsoClock};
use vdso_time::{ClockId, syscall};

type Limiter<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<Moment>>;

const PERIOD: Duration = Duration::from_millis(10);

/// The error of the counter's rate in the duration of a test.
const SLACK: Duration = Duration::from_micros(100);

fn kernel() -> Duration {
    let now = syscall::clock_gettime(ClockId::MONOTONIC).expect("the kernel has this clock");
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).expect("less than a second"))
}

fn limiter<C: Clock<Instant = Moment>>(clock: C, quota: Quota) -> Limiter<C> {
    RateLimiter::direct_with_clock(quota, clock)
}

fn five() -> NonZeroU32 {
    NonZeroU32::new(5).expect("it is not 0")
}

fn a_burst_is_let_through_and_no_more<C: Clock<Instant = Moment>>(clock: C) {
    let limiter = limiter(clock, Quota::per_hour(five()));
    let answers: Vec<bool> = (0..8).map(|_| limiter.check().is_ok()).collect();
    assert_eq!(answers, [true, true, true, true, true, false, false, false]);
}

fn the_next_comes_when_its_time_has<C: Clock<Instant = Moment> + Clone>(clock: &C) {
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

fn threads_share_a_quota<C: Clock<Instant = Moment> + Sync>(clock: C) {
    let quota = Quota::with_period(PERIOD).expect("it is not 0").allow_burst(five());
    let before = kernel();
    let limiter = limiter(clock, quota);
    let passed = thread::scope(|scope| {
        let ask = || (0..200_000).filter(|_| limiter.check().is_ok()).count();
        let threads = [(); 4].map(|()| scope.spawn(ask));
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<usize>()
    });
    let taken = kernel().saturating_sub(before) + SLACK;
    let most = 5 + taken.as_nanos() / PERIOD.as_nanos();
    assert!((5..=most).contains(&(passed as u128)), "{passed} in {taken:?}, not {most}");
}

fn a_moment_is_the_kernels<C: Clock<Instant = Moment>>(clock: &C) {
    let nanos =
        |moment: Moment| u128::from(moment.duration_since(moment.saturating_sub(Nanos::new(1))).as_u64());
    let now = clock.now();
    assert_eq!(nanos(now), 1);
    assert_eq!((now + Nanos::new(7)).duration_since(now), Nanos::new(7));
    assert_eq!(now.duration_since(now + Nanos::new(7)), Nanos::new(0));
    // A subtraction that would go below zero has no effect.
    assert_eq!(now.saturating_sub(Nanos::new(u64::MAX)), now);
    let (before, start) = (kernel(), clock.now());
    thread::sleep(PERIOD);
    let (end, inside) = (clock.now(), kernel().saturating_sub(before));
    let measured = Duration::from(end.duration_since(start));
    assert!(PERIOD <= measured + SLACK && measured <= inside + SLACK, "{measured:?} in {inside:?}");
}

macro_rules! for_each_clock {
    ($($test:ident($($clock:tt)*);)*) => {
        $(
            mod $test {
                #[test]
                fn by_the_vdso() {
                    super::$test($($clock)* super::VdsoClock);
                }

                #[test]
                fn by_the_counter() {
                    super::$test($($clock)* super::CounterClock);
                }
            }
        )*
    };
}

for_each_clock! {
    a_burst_is_let_through_and_no_more();
    the_next_comes_when_its_time_has(&);
    threads_share_a_quota();
    a_moment_is_the_kernels(&);
}
