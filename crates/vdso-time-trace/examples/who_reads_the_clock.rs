//! Which of a program's threads read the clock, how often, and at what cost:
//! `cargo run --release -p vdso-time-trace --features enabled --example who_reads_the_clock`

#![allow(clippy::cast_precision_loss, reason = "counts and nanoseconds are far below 2^53")]

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use vdso_time::{Clock as _, ClockId, Instant, MonotonicCoarse, clock_gettime, getcpu, time};
use vdso_time_trace::{
    Counter, Full, Interval, Link, PerSite, Select, Tracer, attach, detach, report, traced,
};

/// More than the sites of this program.
const ROOM: usize = 16;

static CALLS: PerSite<Counter, ROOM> = PerSite::new();
static COUNT: Tracer = Tracer::new(&CALLS);
static TIMES: PerSite<Interval, ROOM> = PerSite::new();
static MEASURE: Tracer = Tracer::new(&TIMES);
static LINKS: [Link; 2 * ROOM] = Link::array();

fn serve_requests(until: Instant) {
    loop {
        let start = traced!("request start", Instant::now());
        if start >= until {
            return;
        }
        black_box(traced!("log line", clock_gettime(ClockId::REALTIME)).ok());
        for part in 0..20_u64 {
            black_box(traced!("step", Instant::now()));
            (0..200 * part).for_each(|work| {
                black_box(work);
            });
        }
        black_box(traced!("which shard", getcpu()).ok());
        black_box(traced!("request end", Instant::now()).duration_since(start));
    }
}

fn expire_cache(until: Instant) {
    while traced!("cache: deadline", MonotonicCoarse::now()).as_nanos() < until.as_nanos() {
        black_box(traced!("cache: stamp", time()));
        thread::sleep(Duration::from_millis(2));
    }
}

fn main() -> Result<(), Full> {
    attach(&COUNT, Select::All, &LINKS)?;
    attach(&MEASURE, Select::All, &LINKS)?;
    let start = Instant::now();
    let until = start + Duration::from_millis(500);
    thread::scope(|scope| {
        scope.spawn(|| expire_cache(until));
        (0..3).for_each(|_| drop(scope.spawn(|| serve_requests(until))));
    });
    let seconds = start.elapsed().as_secs_f64();
    detach(&COUNT, Select::All);
    detach(&MEASURE, Select::All);

    println!("site             function                calls/s     ns  of a CPU   < 1 us");
    for (site, calls) in report(&CALLS).rows().filter(|(_, calls)| *calls > 0) {
        let Some(times) = TIMES.of(site) else { continue };
        // The median, because a preempted read lasts as long as its thread waits.
        let Some(nanos) = times.cost().quantile(0.5) else { continue };
        let (per_second, nanos) = (calls as f64 / seconds, *nanos.end() as f64);
        println!(
            "{:<16} {:<20} {per_second:>10.0} {nanos:>6} {:>8.3}% {:>7.1}%",
            site.name(),
            site.function(),
            100.0 * per_second * nanos / 1e9,
            100.0 * times.close() as f64 / calls as f64,
        );
    }
    println!("\n< 1 us: after the read before at the same site, by any thread");
    Ok(())
}
