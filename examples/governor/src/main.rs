//! `cargo run --release`: what a check of a rate limiter costs with each clock.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::clock::{Clock, MonotonicClock, QuantaClock};
use governor::middleware::NoOpMiddleware;
use governor::{Quota, RateLimiter};
use governor_clocks::{CounterClock, VdsoClock};
use vdso_time::counter::{self, Status};
use vdso_time_benches::harness::stats::median;
use vdso_time_benches::harness::{Contender, Spacing, machine, measure};

/// Creates a contender that checks a limiter with this quota.
fn checks<C>(name: &'static str, clock: C, quota: Quota) -> Contender
where
    C: Clock + 'static,
    C::Instant: 'static,
{
    let limiter = RateLimiter::<_, _, _, NoOpMiddleware<C::Instant>>::direct_with_clock(quota, clock);
    let limiter: &'static _ = Box::leak(Box::new(limiter));
    Contender::new(name, move || {
        let _ = black_box(limiter.check());
    })
}

fn contenders(quota: Quota) -> [Contender; 5] {
    [
        checks("quanta, governor's default", QuantaClock::default(), quota),
        checks("std", MonotonicClock, quota),
        checks("vdso-time", VdsoClock, quota),
        checks("vdso-time's counter", CounterClock, quota),
        checks("quanta again", QuantaClock::default(), quota),
    ]
}

fn main() {
    let start = Instant::now();
    while counter::status() != Status::Used && start.elapsed() < Duration::from_secs(1) {
        let _ = counter::monotonic();
    }
    println!("{}- counter: {}", machine::describe(), counter::status());
    let always = Quota::per_second(NonZeroU32::MAX).allow_burst(NonZeroU32::MAX);
    let hardly = Quota::per_hour(NonZeroU32::MIN);
    for (answer, quota) in [("yes", always), ("not yet", hardly)] {
        for spacing in Spacing::ALL {
            println!(
                "\ncheck() that answers {answer}, {}: ns, and the ratio to governor's default",
                spacing.name()
            );
            let all = contenders(quota);
            let all: Vec<&Contender> = all.iter().collect();
            let runs: Vec<Vec<f64>> = (0..7).map(|_| measure(&all, spacing, 200)).collect();
            for (at, contender) in all.iter().enumerate() {
                let of = |what: &dyn Fn(&Vec<f64>) -> f64| median(&runs.iter().map(what).collect::<Vec<_>>());
                let (nanos, ratio) = (of(&|run| run[at]), of(&|run| run[at] / run[0]));
                println!("  {:28} {nanos:7.2}  {ratio:.3}", contender.name);
            }
        }
    }
}
