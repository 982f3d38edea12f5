//! Prints what an operation of each client costs, as the programs of the benches do. It is compiled
//! with the original and with the patch, and its argument says with which.

use std::env;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::prelude::{LocalSpan, Span};
use governor::{Quota, RateLimiter};
use metrics_util::MetricKindMask;
use metrics_util::registry::{GenerationalStorage, Recency, Registry};

/// The operations of a batch, whose mean is one value.
const BATCH: u32 = 100;

/// How long each operation is measured.
const TIME: Duration = Duration::from_millis(20);

/// Prints the median of the batches.
fn print(name: &str, mut batch: impl FnMut()) {
    let mut means = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < TIME {
        let start = Instant::now();
        batch();
        means.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH));
    }
    means.sort_by(f64::total_cmp);
    say(name, means[means.len() / 2]);
}

fn say(name: &str, nanos: f64) {
    println!("{name}\tisolated\t{}\t{nanos}", env::args().nth(1).unwrap_or_default());
}

/// A batch of an operation that does not care for its number.
fn each(mut operation: impl FnMut()) -> impl FnMut() {
    move || (0..BATCH).for_each(|_| operation())
}

/// Nobody looks at the spans.
struct Nobody;

impl Reporter for Nobody {
    fn report(&mut self, _: Vec<SpanRecord>) {}
}

fn main() {
    let start = Instant::now();
    let clock = quanta::Clock::new();
    black_box(clock.now());
    say("quanta: the first `Clock::new()` and `now()`", start.elapsed().as_secs_f64() * 1e9);
    // The counter clock measures the counter's rate during 11 ms of reads.
    while start.elapsed() < TIME {
        black_box(clock.now());
    }

    print("quanta: `Instant::now()`", each(|| _ = black_box(quanta::Instant::now())));
    print("quanta: `Clock::raw()`", each(|| _ = black_box(clock.raw())));

    let quota = Quota::per_second(NonZeroU32::MAX).allow_burst(NonZeroU32::MAX);
    let limiter = RateLimiter::direct(quota);
    print("governor: `check()`", each(|| _ = black_box(limiter.check())));
    let limiter = RateLimiter::keyed(quota);
    print("governor: `check_key()`", each(|| _ = black_box(limiter.check_key(&7))));

    let registry = Registry::new(GenerationalStorage::atomic());
    let key = metrics::Key::from_static_name("requests");
    let generation = registry.get_or_create_counter(&key, |counter| counter.get_generation());
    let recency = Recency::new(clock, MetricKindMask::ALL, Some(Duration::MAX));
    let should_store = || recency.should_store_counter(&key, generation, &registry);
    print("metrics-util: `Recency::should_store_counter()`", each(|| _ = black_box(should_store())));

    let new_cache = || moka::sync::Cache::<u32, u32>::new(10_000);
    print("moka: `Cache::new()`", each(|| drop(black_box(new_cache()))));
    let cache = new_cache();
    cache.insert(7, 7);
    print("moka: `get()`", each(|| _ = black_box(cache.get(&7))));
    print("moka: `insert()`", each(|| cache.insert(7, 7)));

    print("fastant: `Instant::now()`", each(|| _ = black_box(fastant::Instant::now())));
    fastrace::set_reporter(Nobody, Config::default());
    print("fastrace: a local span", || {
        let root = Span::root("root", SpanContext::random());
        let _guard = root.set_local_parent();
        (0..BATCH).for_each(|_| drop(black_box(LocalSpan::enter_with_local_parent("step"))));
    });
}
