//! `cargo run --release -p vdso-time-trace --features enabled --example who_reads_the_clock`: a program that reads the clock more than it
//! knows, and who does it.
//!
//! Some threads serve requests, one keeps a cache. Each of their reads is a site; a [`Counter`] and an [`Interval`] for each say the rest.

#![allow(clippy::cast_precision_loss, reason = "counts and nanoseconds are far below 2^53")]

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use vdso_time::{Clock as _, ClockId, Instant, MonotonicCoarse, clock_gettime, getcpu, time};
use vdso_time_trace::{
    Counter, Full, Interval, Link, PerSite, Select, Tracer, attach, detach, report, traced,
};

/// More sites than the program has.
const ROOM: usize = 16;

static CALLS: PerSite<Counter, ROOM> = PerSite::new();
static COUNT: Tracer = Tracer::new(&CALLS);
static TIMES: PerSite<Interval, ROOM> = PerSite::new();
static MEASURE: Tracer = Tracer::new(&TIMES);
static LINKS: [Link; 2 * ROOM] = Link::array();

const WORKERS: usize = 3;
const LENGTH: Duration = Duration::from_millis(500);

/// Serves requests until the time is up.
fn serve(until: Instant) {
    loop {
        let start = traced!("request start", Instant::now());
        if start >= until {
            return;
        }
        black_box(traced!("log line", clock_gettime(ClockId::REALTIME)).ok());
        for part in 0..20_u64 {
            // One who takes a time for every step, though the step before has just taken one.
            black_box(traced!("step", Instant::now()));
            work(part);
        }
        black_box(traced!("which shard", getcpu()).ok());
        black_box(traced!("request end", Instant::now()).duration_since(start));
    }
}

/// Looks now and then for what has expired.
fn expire(until: Instant) {
    while traced!("cache: deadline", MonotonicCoarse::now()).as_nanos() < until.as_nanos() {
        black_box(traced!("cache: stamp", time()));
        thread::sleep(Duration::from_millis(2));
    }
}

fn work(amount: u64) {
    (0..200 * amount).for_each(|number| {
        black_box(number);
    });
}

fn main() -> Result<(), Full> {
    attach(&COUNT, Select::All, &LINKS)?;
    attach(&MEASURE, Select::All, &LINKS)?;
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| expire(start + LENGTH));
        (0..WORKERS).for_each(|_| {
            scope.spawn(|| serve(start + LENGTH));
        });
    });
    let elapsed = start.elapsed();
    detach(&COUNT, Select::All);
    detach(&MEASURE, Select::All);

    println!(
        "\n{:<16} {:<20} {:>10} {:>6} {:>9} {:>8}",
        "site", "function", "calls/s", "ns", "of a CPU", "< 1 us"
    );
    for (site, calls) in report(&CALLS).rows().filter(|(_, calls)| *calls > 0) {
        let Some(times) = TIMES.of(site) else { continue };
        // The median, for a read that was preempted lasts as long as its thread waits; the upper end of its bucket.
        let Some(nanos) = times.cost().quantile(0.5) else { continue };
        let (calls, nanos, close) = (calls as f64, *nanos.end() as f64, times.close() as f64);
        let per_second = calls / elapsed.as_secs_f64();
        println!(
            "{:<16} {:<20} {per_second:>10.0} {nanos:>6} {:>8.3}% {:>7.1}%",
            site.name(),
            site.function(),
            100.0 * per_second * nanos / 1e9,
            100.0 * close / calls,
        );
    }
    println!(
        "\n< 1 us: after the one before at the same site, by whatever thread. If one thread made both, it could do with one answer."
    );
    Ok(())
}
