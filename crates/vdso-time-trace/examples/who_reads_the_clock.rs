//! Shows which call sites read the clock, how often, and which could reuse an earlier read:
//! `cargo run --release -p vdso-time-trace --features enabled --example who_reads_the_clock`

use std::hint::black_box;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use vdso_time::{ClockId, Instant, clock_gettime, getcpu, time};
use vdso_time_trace::{Counter, Site, Trace, Tracer, report, sites, traced};

/// More than the number of sites in this program.
const ROOM: usize = 16;

/// The two tracers of each site.
static COUNTS: ([Counter; ROOM], [Close; ROOM]) = (
    [const { Counter::new() }; ROOM],
    [const { Close::new() }; ROOM],
);
static TRACER: Tracer = Tracer::new(&COUNTS);

/// A tracer that this program defines. It counts the reads that come less than 1 us after another
/// read at the same site.
struct Close {
    last: AtomicI64,
    reads: AtomicU64,
}

impl Close {
    const fn new() -> Self {
        Self {
            last: AtomicI64::new(0),
            reads: AtomicU64::new(0),
        }
    }
}

impl Trace for Close {
    fn event(&self, _: &'static Site, nanos: Option<i64>) {
        if let Some(nanos) = nanos {
            let is_close = nanos - self.last.swap(nanos, Ordering::Relaxed) < 1_000;
            self.reads.fetch_add(is_close.into(), Ordering::Relaxed);
        }
    }
}

fn serve_requests(until: Instant) {
    while traced!("request start", Instant::now()) < until {
        black_box(traced!("log line", time()));
        for part in 0..20_u64 {
            black_box(traced!("request: step", Instant::now()));
            black_box((0..200 * part).map(black_box).sum::<u64>());
        }
        black_box(traced!("which shard", getcpu()).ok());
        black_box(traced!("request end", clock_gettime(ClockId::MONOTONIC)).ok());
    }
}

fn main() {
    for site in sites() {
        site.set_tracer(Some(&TRACER));
    }
    let until = Instant::now() + Duration::from_millis(500);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| serve_requests(until));
        }
    });

    let (calls, close) = &COUNTS;
    println!("{}", report(calls));
    for (site, close) in sites().iter().zip(close) {
        if site.name().starts_with("request") {
            let reads = close.reads.load(Ordering::Relaxed);
            println!("{:13} {reads:>9} within 1 us", site.name());
        }
    }
}
