//! The rows, and the contenders that are Rust, in this very program; `foreign` has the others.

use std::hint::black_box;
use std::time;

use vdso_time::{ClockId, Routes, counter, syscall};
use vdso_time_benches::harness::{Contender, Row};
use vdso_time_benches::rows::keep::Keep;
use vdso_time_benches::rows::{floor, libc_calls};
use vdso_time_trace::traced;

use crate::platform;

/// This crate, in every row.
pub const OURS: &str = "vdso-time";
/// The vDSO's own function through a pointer in a register, in every row.
pub const DIRECT: &str = "direct";

/// This crate at a site of vdso-time-trace that nobody traces.
pub const TRACEABLE: &str = "vdso-time, traceable";

pub const MONOTONIC: &str = "clock_gettime(MONOTONIC)";
pub const ELAPSED: &str = "now() and elapsed()";
pub const COUNTER: &str = "counter";
pub const ORDERED: &str = "counter, ordered";

/// What follows `CLOCK_`; rustix has the last only for those that every kernel has.
const CLOCKS: &[(&str, ClockId, Option<rustix::time::ClockId>)] = &[
    ("REALTIME", ClockId::REALTIME, Some(rustix::time::ClockId::Realtime)),
    ("MONOTONIC", ClockId::MONOTONIC, Some(rustix::time::ClockId::Monotonic)),
    ("BOOTTIME", ClockId::BOOTTIME, Some(rustix::time::ClockId::Boottime)),
    ("TAI", ClockId::TAI, None),
    ("MONOTONIC_RAW", ClockId::MONOTONIC_RAW, Some(rustix::time::ClockId::MonotonicRaw)),
    ("REALTIME_COARSE", ClockId::REALTIME_COARSE, Some(rustix::time::ClockId::RealtimeCoarse)),
    ("MONOTONIC_COARSE", ClockId::MONOTONIC_COARSE, Some(rustix::time::ClockId::MonotonicCoarse)),
    ("THREAD_CPUTIME", ClockId::THREAD_CPUTIME, Some(rustix::time::ClockId::ThreadCPUTime)),
];

/// Keeps an answer that comes in registers.
#[inline]
fn keep<T>(answer: T) {
    black_box(answer);
}

/// Every row; the last contender, `direct` where the vDSO has the function, is the one that is measured twice.
pub fn rows() -> Vec<Row> {
    let routes = vdso_time::routes();
    let mut rows = vec![time(&routes), gettimeofday(&routes)];
    rows.extend(CLOCKS.iter().map(|&(name, clock, rustix)| clock_gettime(&routes, name, clock, rustix)));
    rows.extend([
        clock_getres(&routes),
        getcpu(&routes),
        elapsed(&routes),
        counters(&routes),
        ordered(&routes),
    ]);
    rows
}

fn row(name: impl Into<String>, contenders: Vec<Contender>, direct: Option<Contender>) -> Row {
    Row { name: name.into(), contenders: contenders.into_iter().chain(direct).collect() }
}

/// Ends with `CLOCK_MONOTONIC`, the measure of the rows that are no single function of the vDSO.
fn beside_monotonic(name: &str, routes: &Routes, contenders: Vec<Contender>) -> Row {
    row(name, contenders, floor(routes.clock_gettime, |abi| &abi.clock_gettime, ClockId::MONOTONIC))
}

fn time(routes: &Routes) -> Row {
    let contenders = vec![
        Contender::new(OURS, || vdso_time::time().keep()),
        Contender::new(TRACEABLE, || traced!(vdso_time::time()).keep()),
        Contender::new("system call", || syscall::time().keep()),
        Contender::new("libc", libc_calls::time),
        Contender::new("std", || {
            let since = time::SystemTime::now().duration_since(time::UNIX_EPOCH);
            since.map_or(0, |since| since.as_secs()).keep();
        }),
        Contender::new("coarsetime", || coarsetime::Clock::now_since_epoch().as_secs().keep()),
        Contender::new("clocksource", || keep(clocksource::coarse::UnixInstant::now())),
    ];
    row("time()", contenders, floor(routes.time, |abi| &abi.time, ClockId::REALTIME_COARSE))
}

fn gettimeofday(routes: &Routes) -> Row {
    let contenders = vec![
        Contender::new(OURS, || vdso_time::gettimeofday().keep()),
        Contender::new(TRACEABLE, || traced!(vdso_time::gettimeofday()).keep()),
        Contender::new("system call", || syscall::gettimeofday().keep()),
        Contender::new("libc", libc_calls::gettimeofday),
    ];
    row("gettimeofday()", contenders, floor(routes.gettimeofday, |abi| &abi.gettimeofday, ClockId::REALTIME))
}

fn clock_gettime(
    routes: &Routes,
    name: &str,
    clock: ClockId,
    by_rustix: Option<rustix::time::ClockId>,
) -> Row {
    let mut contenders = vec![
        Contender::new(OURS, move || vdso_time::clock_gettime(clock).keep()),
        Contender::new(TRACEABLE, move || traced!(vdso_time::clock_gettime(clock)).keep()),
        Contender::new("system call", move || syscall::clock_gettime(clock).keep()),
        Contender::new("libc", move || libc_calls::clock_gettime(clock)),
    ];
    contenders.extend(by_rustix.map(|id| {
        Contender::new("rustix", move || {
            let now = rustix::time::clock_gettime(id);
            [now.tv_sec, now.tv_nsec].keep();
        })
    }));
    match clock {
        ClockId::REALTIME => contenders.extend([
            Contender::new("std", || time::SystemTime::now().keep()),
            Contender::new("clocksource", || keep(clocksource::precise::UnixInstant::now())),
        ]),
        ClockId::MONOTONIC => contenders.extend([
            Contender::new("std", || time::Instant::now().keep()),
            Contender::new("clocksource", || keep(clocksource::precise::Instant::now())),
        ]),
        ClockId::MONOTONIC_COARSE => contenders.extend([
            Contender::new("coarsetime", || keep(coarsetime::Instant::now())),
            Contender::new("clocksource", || keep(clocksource::coarse::Instant::now())),
        ]),
        _ => {}
    }
    let direct = floor(routes.clock_gettime, |abi| &abi.clock_gettime, clock);
    row(format!("clock_gettime({name})"), contenders, direct)
}

fn clock_getres(routes: &Routes) -> Row {
    let contenders = vec![
        Contender::new(OURS, || vdso_time::clock_getres(ClockId::MONOTONIC).keep()),
        Contender::new("system call", || syscall::clock_getres(ClockId::MONOTONIC).keep()),
        Contender::new("libc", || libc_calls::clock_getres(ClockId::MONOTONIC)),
        Contender::new("rustix", || {
            let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
            [resolution.tv_sec, resolution.tv_nsec].keep();
        }),
    ];
    let direct = floor(routes.clock_getres, |abi| &abi.clock_getres, ClockId::MONOTONIC);
    row("clock_getres(MONOTONIC)", contenders, direct)
}

fn getcpu(routes: &Routes) -> Row {
    let contenders = vec![
        Contender::new(OURS, || vdso_time::getcpu().keep()),
        Contender::new("system call", || syscall::getcpu().keep()),
        Contender::new("libc", platform::libc_getcpu),
        // These two tell the CPU alone.
        Contender::new("sched_getcpu", libc_calls::getcpu),
        Contender::new("rustix", || keep(rustix::thread::sched_getcpu())),
    ];
    row("getcpu()", contenders, floor(routes.getcpu, |abi| &abi.getcpu, ClockId::MONOTONIC))
}

fn elapsed(routes: &Routes) -> Row {
    let contenders = vec![
        Contender::new(OURS, || keep(vdso_time::Instant::now().elapsed())),
        Contender::new("std", || keep(time::Instant::now().elapsed())),
        Contender::new("vdso-time's counter", || {
            let start = counter::monotonic();
            (counter::monotonic() - start).keep();
        }),
        Contender::new("quanta", || keep(quanta::Instant::now().elapsed())),
        Contender::new("minstant", || keep(minstant::Instant::now().elapsed())),
        Contender::new("fastant", || keep(fastant::Instant::now().elapsed())),
        Contender::new("coarsetime", || keep(coarsetime::Instant::now().elapsed())),
        Contender::new("clocksource", || keep(clocksource::precise::Instant::now().elapsed())),
    ];
    beside_monotonic(ELAPSED, routes, contenders)
}

/// A clock of quanta's, for the life of the process, so that a loop has nothing but its address.
pub fn quanta_clock() -> &'static quanta::Clock {
    Box::leak(Box::new(quanta::Clock::new()))
}

fn counters(routes: &Routes) -> Row {
    let clock = quanta_clock();
    let (minstant, fastant): (&'static _, &'static _) =
        (Box::leak(Box::new(minstant::Anchor::new())), Box::leak(Box::new(fastant::Anchor::new())));
    let mut contenders = vec![
        Contender::new(OURS, || counter::monotonic().keep()),
        Contender::new("vdso-time's realtime", || counter::realtime().keep()),
        Contender::new("quanta Clock::now", move || keep(clock.now())),
        Contender::new("quanta Clock::raw", move || clock.raw().keep()),
        Contender::new("quanta Instant::now", || keep(quanta::Instant::now())),
        Contender::new("minstant", || keep(minstant::Instant::now())),
        Contender::new("minstant in ns", move || minstant::Instant::now().as_unix_nanos(minstant).keep()),
        Contender::new("fastant", || keep(fastant::Instant::now())),
        Contender::new("fastant in ns", move || fastant::Instant::now().as_unix_nanos(fastant).keep()),
    ];
    contenders.extend(platform::COUNTERS.iter().map(|&(name, read)| platform::contender(name, read)));
    beside_monotonic(COUNTER, routes, contenders)
}

fn ordered(routes: &Routes) -> Row {
    let mut contenders = vec![Contender::new(OURS, || counter::monotonic_ordered().keep())];
    contenders.extend(platform::ORDERED.iter().map(|&(name, read)| platform::contender(name, read)));
    beside_monotonic(ORDERED, routes, contenders)
}
