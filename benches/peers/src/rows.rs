//! The rows of the benches, with the contenders of other crates.

use rustix::time::ClockId as Id;
use vdso_time::ClockId;
use vdso_time_benches::calls::keep::Keep as _;
use vdso_time_benches::calls::{self, COUNTERS, keep};
use vdso_time_benches::harness::{Contender, Row};
use vdso_time_trace::traced;

/// This crate at a site of vdso-time-trace that nobody traces.
pub const TRACEABLE: &str = "vdso-time, traceable";
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
        "time()" => vec![
            Contender::new(TRACEABLE, || traced!(vdso_time::time()).keep()),
            Contender::new("coarsetime", || coarsetime::Clock::now_since_epoch().as_secs().keep()),
            Contender::new("clocksource", || keep(clocksource::coarse::UnixInstant::now())),
        ],
        "gettimeofday()" => vec![Contender::new(TRACEABLE, || traced!(vdso_time::gettimeofday()).keep())],
        "clock_gettime(REALTIME)" => {
            let mut peers = gettime(ClockId::REALTIME, Id::Realtime);
            peers.push(Contender::new("clocksource", || keep(clocksource::precise::UnixInstant::now())));
            peers
        }
        MONOTONIC => {
            let mut peers = gettime(ClockId::MONOTONIC, Id::Monotonic);
            peers.push(Contender::new("clocksource", || keep(clocksource::precise::Instant::now())));
            peers
        }
        "clock_gettime(BOOTTIME)" => gettime(ClockId::BOOTTIME, Id::Boottime),
        COARSE => {
            let mut peers = gettime(ClockId::MONOTONIC_COARSE, Id::MonotonicCoarse);
            peers.push(Contender::new("coarsetime", || keep(coarsetime::Instant::now())));
            peers.push(Contender::new("clocksource", || keep(clocksource::coarse::Instant::now())));
            peers
        }
        "clock_getres(MONOTONIC)" => vec![Contender::new("rustix", || {
            let resolution = rustix::time::clock_getres(Id::Monotonic);
            [resolution.tv_sec, resolution.tv_nsec].keep();
        })],
        "getcpu()" => vec![Contender::new("rustix", || keep(rustix::thread::sched_getcpu()))],
        _ => {
            let clock = leak(quanta::Clock::new());
            let (minstant, fastant) = (leak(minstant::Anchor::new()), leak(fastant::Anchor::new()));
            vec![
                Contender::new("quanta Clock::now", move || keep(clock.now())),
                Contender::new("quanta Instant::now", || keep(quanta::Instant::now())),
                Contender::new("minstant in ns", move || {
                    minstant::Instant::now().as_unix_nanos(minstant).keep();
                }),
                Contender::new("fastant in ns", move || {
                    fastant::Instant::now().as_unix_nanos(fastant).keep();
                }),
            ]
        }
    }
}

fn gettime(clock: ClockId, id: Id) -> Vec<Contender> {
    let traceable = Contender::new(TRACEABLE, move || traced!(vdso_time::clock_gettime(clock)).keep());
    let rustix = Contender::new("rustix", move || {
        let now = rustix::time::clock_gettime(id);
        [now.tv_sec, now.tv_nsec].keep();
    });
    vec![traceable, rustix]
}
