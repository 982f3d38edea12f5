//! The rows of the benches, with the contenders of other crates.

use rustix::time::ClockId as Id;
use vdso_time_benches::calls::keep::Keep as _;
use vdso_time_benches::calls::{self, COUNTERS, keep};
use vdso_time_benches::harness::{Contender, Row};

pub const MONOTONIC: &str = "clock_gettime(MONOTONIC)";
pub const COARSE: &str = "clock_gettime(MONOTONIC_COARSE)";
/// The clocks on the CPU's counter: a read, and the time since an earlier read.
pub const COUNTER: &str = COUNTERS[0];
pub const ELAPSED: &str = COUNTERS[1];
pub const QUANTA_CLOCK: &str = "quanta Clock::now";
pub const QUANTA_INSTANT: &str = "quanta Instant::now";
pub const OUR_QUANTA: &str = "vdso-time-quanta";

/// The rows that are one call each.
pub const CALLS: [&str; 5] = [
    "time()",
    MONOTONIC,
    COARSE,
    "clock_getres(MONOTONIC)",
    "getcpu()",
];

/// Returns the rows. The last contender is `direct`.
pub fn rows() -> Vec<Row> {
    let mut rows = calls::rows();
    rows.retain(|row| {
        let name = row.name.as_str();
        CALLS.contains(&name) || name == COUNTER || name == ELAPSED
    });
    for row in &mut rows {
        let peers = peers(&row.name);
        row.contenders.splice(0..0, peers);
    }
    rows
}

fn peers(row: &str) -> Vec<Contender> {
    match row {
        "time()" => {
            vec![Contender::new("coarsetime", || {
                let since_epoch = coarsetime::Clock::now_since_epoch();
                since_epoch.as_secs().keep();
            })]
        }
        MONOTONIC => vec![gettime(Id::Monotonic)],
        COARSE => vec![
            gettime(Id::MonotonicCoarse),
            Contender::new("coarsetime", || keep(coarsetime::Instant::now())),
        ],
        "clock_getres(MONOTONIC)" => vec![Contender::new("rustix", || {
            let resolution = rustix::time::clock_getres(Id::Monotonic);
            [resolution.tv_sec, resolution.tv_nsec].keep();
        })],
        "getcpu()" => vec![Contender::new("rustix", || {
            keep(rustix::thread::sched_getcpu());
        })],
        COUNTER => {
            let clock = Box::new(quanta::Clock::new());
            let clock: &'static quanta::Clock = Box::leak(clock);
            vec![
                Contender::new(QUANTA_CLOCK, move || keep(clock.now())),
                Contender::new(QUANTA_INSTANT, || keep(quanta::Instant::now())),
                Contender::new(OUR_QUANTA, || keep(vdso_time_quanta::Instant::now())),
            ]
        }
        ELAPSED => {
            let quanta = quanta::Instant::now();
            let ours = vdso_time_quanta::Instant::now();
            vec![
                Contender::new(QUANTA_INSTANT, move || quanta.elapsed().keep()),
                Contender::new(OUR_QUANTA, move || ours.elapsed().keep()),
            ]
        }
        _ => Vec::new(),
    }
}

fn gettime(id: Id) -> Contender {
    Contender::new("rustix", move || {
        let now = rustix::time::clock_gettime(id);
        [now.tv_sec, now.tv_nsec].keep();
    })
}
