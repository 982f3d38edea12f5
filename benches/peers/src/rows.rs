//! The rows of the benches, with the contenders of other crates.

use rustix::time::ClockId as Id;
use vdso_time_benches::calls::keep::Keep as _;
use vdso_time_benches::calls::{self, COUNTERS, keep};
use vdso_time_benches::harness::{Contender, Row};

pub const MONOTONIC: &str = "clock_gettime(MONOTONIC)";
pub const COARSE: &str = "clock_gettime(MONOTONIC_COARSE)";
pub const COUNTER: &str = COUNTERS[0];

/// The rows that are one call each.
pub const CALLS: [&str; 8] = [
    "time()",
    "gettimeofday()",
    "clock_gettime(REALTIME)",
    MONOTONIC,
    "clock_gettime(BOOTTIME)",
    COARSE,
    "clock_getres(MONOTONIC)",
    "getcpu()",
];

/// Returns the rows. The last contender is `direct`.
pub fn rows() -> Vec<Row> {
    let is_compared = |row: &Row| CALLS.contains(&row.name.as_str()) || row.name == COUNTER;
    let rows = calls::callers().into_iter().filter(is_compared);
    let extended = rows.map(|mut row| {
        row.contenders.extend(peers(&row.name));
        calls::with_direct(row)
    });
    extended.collect()
}

/// A clock that lives as long as the process.
pub fn leak<T>(clock: T) -> &'static T {
    Box::leak(Box::new(clock))
}

fn peers(row: &str) -> Vec<Contender> {
    match row {
        "time()" => {
            vec![Contender::new("coarsetime", || coarsetime::Clock::now_since_epoch().as_secs().keep())]
        }
        "gettimeofday()" => Vec::new(),
        "clock_gettime(REALTIME)" => vec![gettime(Id::Realtime)],
        MONOTONIC => vec![gettime(Id::Monotonic)],
        "clock_gettime(BOOTTIME)" => vec![gettime(Id::Boottime)],
        COARSE => vec![
            gettime(Id::MonotonicCoarse),
            Contender::new("coarsetime", || keep(coarsetime::Instant::now())),
        ],
        "clock_getres(MONOTONIC)" => vec![Contender::new("rustix", || {
            let resolution = rustix::time::clock_getres(Id::Monotonic);
            [resolution.tv_sec, resolution.tv_nsec].keep();
        })],
        "getcpu()" => vec![Contender::new("rustix", || keep(rustix::thread::sched_getcpu()))],
        _ => {
            let clock = leak(quanta::Clock::new());
            vec![
                Contender::new("quanta Clock::now", move || keep(clock.now())),
                Contender::new("quanta Instant::now", || keep(quanta::Instant::now())),
            ]
        }
    }
}

fn gettime(id: Id) -> Contender {
    Contender::new("rustix", move || {
        let now = rustix::time::clock_gettime(id);
        [now.tv_sec, now.tv_nsec].keep();
    })
}
