//! The rows of bionic's `time_benchmark.cpp`, under its names.
//!
//! Its plain `BM_time_clock_gettime` is `CLOCK_MONOTONIC`; `_unsupported` asks for a clock that there is not, which every vDSO hands
//! on to the kernel; `_syscall` is the system call without a detour. The clocks that it lacks have names after its fashion.

mod counter;
pub mod direct;
pub mod keep;
pub mod libc_calls;

use std::time;

use vdso_time::arch::{Abi, Function, NATIVE};
use vdso_time::{ClockId, Route, Routes, syscall};

use crate::harness::{Contender, Row};
use keep::Keep;

/// What follows `BM_time_clock_gettime` and `BM_time_clock_getres`, and the clock.
const CLOCKS: &[(&str, ClockId)] = &[
    ("", ClockId::MONOTONIC),
    ("_MONOTONIC_COARSE", ClockId::MONOTONIC_COARSE),
    ("_MONOTONIC_RAW", ClockId::MONOTONIC_RAW),
    ("_REALTIME", ClockId::REALTIME),
    ("_REALTIME_COARSE", ClockId::REALTIME_COARSE),
    ("_BOOTTIME", ClockId::BOOTTIME),
    ("_TAI", ClockId::TAI),
    ("_unsupported", ClockId::from_raw(-1)),
];

/// Every row. Its contenders: `vdso`, this crate; `syscall`, this crate's `syscall`; `libc`; `std`, where that has such a function;
/// `direct`, the vDSO's own function through a pointer in a register, which nothing can be faster than.
///
/// In a `_syscall` row the contenders are `syscall` and `libc`'s function of that name. In a `BM_counter` row they are `counter`, the counter
/// clock, `ticks`, the bare counter, `syscall` and `direct`.
#[must_use]
pub fn clocks() -> Vec<Row> {
    let routes = vdso_time::routes();
    let gettime = CLOCKS.iter().map(|&(suffix, clock)| clock_gettime(&routes, suffix, clock));
    let getres = CLOCKS.iter().map(|&(suffix, clock)| clock_getres(&routes, suffix, clock));
    let others =
        [gettimeofday(&routes), gettimeofday_syscall(), time(&routes), time_syscall(), getcpu(&routes)];
    gettime
        .chain([clock_gettime_syscall()])
        .chain(getres)
        .chain([clock_getres_syscall()])
        .chain(others)
        .chain(counter::rows(&routes))
        .collect()
}

/// The rows whose contenders have no `direct`, and why: who answers instead.
#[must_use]
pub fn without_floor() -> Vec<String> {
    let routes = vdso_time::routes();
    let functions = [
        ("BM_time_clock_gettime", routes.clock_gettime),
        ("BM_time_clock_getres", routes.clock_getres),
        ("BM_time_gettimeofday", routes.gettimeofday),
        ("BM_time_time", routes.time),
        ("BM_time_getcpu", routes.getcpu),
    ];
    let without = functions.iter().filter(|(_, route)| !matches!(route, Route::Vdso { .. }));
    without.map(|(name, route)| format!("{name} has no `direct`: {route}")).chain(counter::note()).collect()
}

/// Go's `time.Now`: one `CLOCK_REALTIME` and one `CLOCK_MONOTONIC`. The last contender is this crate.
#[must_use]
pub fn time_now() -> Row {
    let calls = [
        Contender::new("syscall", || {
            syscall::clock_gettime(ClockId::REALTIME).keep();
            syscall::clock_gettime(ClockId::MONOTONIC).keep();
        }),
        Contender::new("libc", || {
            libc_calls::clock_gettime(ClockId::REALTIME);
            libc_calls::clock_gettime(ClockId::MONOTONIC);
        }),
        Contender::new("std", || {
            time::SystemTime::now().keep();
            time::Instant::now().keep();
        }),
        Contender::new("vdso", || {
            vdso_time::clock_gettime(ClockId::REALTIME).keep();
            vdso_time::clock_gettime(ClockId::MONOTONIC).keep();
        }),
    ];
    row("TimeNow", calls)
}

fn row(name: impl Into<String>, contenders: impl IntoIterator<Item = Contender>) -> Row {
    Row { name: name.into(), contenders: contenders.into_iter().collect() }
}

/// The vDSO's function behind a route, if it is one; `clock` is asked for, if it is one that takes a clock.
#[must_use]
pub fn floor(
    route: Route,
    function: fn(&'static Abi) -> &'static Function,
    clock: ClockId,
) -> Option<Contender> {
    direct::contender(route, function(NATIVE?), clock)
}

fn clock_gettime(routes: &Routes, suffix: &str, clock: ClockId) -> Row {
    let mut contenders = vec![
        Contender::new("vdso", move || vdso_time::clock_gettime(clock).keep()),
        Contender::new("syscall", move || syscall::clock_gettime(clock).keep()),
        Contender::new("libc", move || libc_calls::clock_gettime(clock)),
    ];
    match clock {
        ClockId::MONOTONIC => contenders.push(Contender::new("std", || time::Instant::now().keep())),
        ClockId::REALTIME => contenders.push(Contender::new("std", || time::SystemTime::now().keep())),
        _ => {}
    }
    contenders.extend(floor(routes.clock_gettime, |abi| &abi.clock_gettime, clock));
    row(format!("BM_time_clock_gettime{suffix}"), contenders)
}

fn clock_gettime_syscall() -> Row {
    let calls = [
        Contender::new("syscall", || syscall::clock_gettime(ClockId::MONOTONIC).keep()),
        Contender::new("libc", || libc_calls::syscall_clock(libc::SYS_clock_gettime)),
    ];
    row("BM_time_clock_gettime_syscall", calls)
}

fn clock_getres(routes: &Routes, suffix: &str, clock: ClockId) -> Row {
    let mut contenders = vec![
        Contender::new("vdso", move || vdso_time::clock_getres(clock).keep()),
        Contender::new("syscall", move || syscall::clock_getres(clock).keep()),
        Contender::new("libc", move || libc_calls::clock_getres(clock)),
    ];
    contenders.extend(floor(routes.clock_getres, |abi| &abi.clock_getres, clock));
    row(format!("BM_time_clock_getres{suffix}"), contenders)
}

fn clock_getres_syscall() -> Row {
    let calls = [
        Contender::new("syscall", || syscall::clock_getres(ClockId::MONOTONIC).keep()),
        Contender::new("libc", || libc_calls::syscall_clock(libc::SYS_clock_getres)),
    ];
    row("BM_time_clock_getres_syscall", calls)
}

fn gettimeofday(routes: &Routes) -> Row {
    let mut contenders = vec![
        Contender::new("vdso", || vdso_time::gettimeofday().keep()),
        Contender::new("syscall", || syscall::gettimeofday().keep()),
        Contender::new("libc", libc_calls::gettimeofday),
    ];
    contenders.extend(floor(routes.gettimeofday, |abi| &abi.gettimeofday, ClockId::REALTIME));
    row("BM_time_gettimeofday", contenders)
}

fn gettimeofday_syscall() -> Row {
    let calls = [
        Contender::new("syscall", || syscall::gettimeofday().keep()),
        Contender::new("libc", libc_calls::syscall_gettimeofday),
    ];
    row("BM_time_gettimeofday_syscall", calls)
}

fn time(routes: &Routes) -> Row {
    let mut contenders = vec![
        Contender::new("vdso", || vdso_time::time().keep()),
        Contender::new("syscall", || syscall::time().keep()),
        Contender::new("libc", libc_calls::time),
        Contender::new("std", || {
            let since = time::SystemTime::now().duration_since(time::UNIX_EPOCH);
            since.map_or(0, |since| since.as_secs()).keep();
        }),
    ];
    contenders.extend(floor(routes.time, |abi| &abi.time, ClockId::REALTIME_COARSE));
    row("BM_time_time", contenders)
}

fn time_syscall() -> Row {
    // aarch64 and arm have no such system call.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    let libc = Some(Contender::new("libc", libc_calls::syscall_time));
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    let libc = None;
    let ours = Contender::new("syscall", || syscall::time().keep());
    row("BM_time_time_syscall", std::iter::once(ours).chain(libc))
}

fn getcpu(routes: &Routes) -> Row {
    let mut contenders = vec![
        Contender::new("vdso", || vdso_time::getcpu().keep()),
        Contender::new("syscall", || syscall::getcpu().keep()),
        Contender::new("libc", libc_calls::getcpu),
    ];
    contenders.extend(floor(routes.getcpu, |abi| &abi.getcpu, ClockId::MONOTONIC));
    row("BM_time_getcpu", contenders)
}
