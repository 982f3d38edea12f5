//! The rows: this crate's calls, and the same calls through the vDSO itself, libc, std and the
//! system call.

mod direct;
mod floor;
pub mod keep;
mod libc_calls;
pub mod slow_reads;

use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use vdso_time::vdso::{Functions, Vdso};
use vdso_time::{ClockId, Route, syscall};
use vdso_time_counter as counter;

use crate::harness::samples::OURS;
use crate::harness::{Contender, Row};
use keep::Keep;

/// The clocks, and their names without `CLOCK_`.
pub const CLOCKS: &[(&str, ClockId)] = &[
    ("MONOTONIC", ClockId::MONOTONIC),
    ("MONOTONIC_COARSE", ClockId::MONOTONIC_COARSE),
    ("MONOTONIC_RAW", ClockId::MONOTONIC_RAW),
    ("REALTIME", ClockId::REALTIME),
    ("REALTIME_COARSE", ClockId::REALTIME_COARSE),
    ("BOOTTIME", ClockId::BOOTTIME),
    ("TAI", ClockId::TAI),
];

/// The rows of the counter clock. Their floors are the bare counter and `CLOCK_MONOTONIC`.
pub const COUNTERS: [&str; 5] = [
    "CounterMonotonicUnordered::now()",
    "CounterMonotonicUnordered: elapsed()",
    "CounterMonotonic::now()",
    "CounterMonotonic: elapsed()",
    "CounterRealtimeUnordered::now()",
];

/// The row of the system call of `time()`.
pub const SYSCALL_TIME: &str = "syscall::try_time()";

/// The row of Go's `time.Now`.
pub const TIME_NOW: &str = "TimeNow";

/// A bare read of the CPU's counter: the floor of the counter clock.
pub const TICKS: &str = "bare counter";

/// The counter, and the least work that turns it into a time: one subtraction, multiplication,
/// shift, addition and comparison with words of one cache line.
pub const LINE: &str = "linear function";

/// The contender that makes the system call.
pub const SYSCALL: &str = "system call";

/// Returns the rows with `direct` as the last contender, where the vDSO has the function.
pub fn rows() -> Vec<Row> {
    let vdso = match Vdso::locate() {
        Ok(vdso) => vdso.functions(),
        Err(_) => Functions::default(),
    };
    let mut rows = Vec::new();
    for &(name, clock) in CLOCKS {
        let direct = direct::contender(vdso.clock_gettime, clock);
        rows.push(clock_gettime(name, clock).with(direct));
    }
    // The other clocks have one of these resolutions.
    for &(name, clock) in &CLOCKS[..2] {
        let direct = direct::contender(vdso.clock_getres, clock);
        rows.push(clock_getres(name, clock).with(direct));
    }
    let direct = direct::contender(vdso.gettimeofday, ClockId::REALTIME);
    rows.push(gettimeofday().with(direct));
    // time() has the vDSO's clock_gettime where it has no time().
    let direct = direct::contender(vdso.time, ClockId::REALTIME_COARSE);
    rows.push(time().with(direct));
    rows.push(syscall_time());
    let direct = direct::contender(vdso.getcpu, ClockId::REALTIME);
    rows.push(getcpu().with(direct));
    for row in counters() {
        let direct = direct::contender(vdso.clock_gettime, ClockId::MONOTONIC);
        rows.push(row.with(direct));
    }
    rows.push(time_now());
    rows
}

/// Returns a line for each function that the vDSO does not answer, and one about the counter.
pub fn notes() -> Vec<String> {
    settle();
    let mut notes = Vec::new();
    for (name, route) in vdso_time::routes().functions() {
        if !matches!(route, Route::Vdso { .. }) {
            notes.push(format!("{name}: {route}"));
        }
    }
    notes.push(format!("counter: {}", counter::state().status));
    notes
}

/// Returns the symbols that answer this process's calls, with their versions.
pub fn symbols() -> Vec<(&'static str, &'static str)> {
    let mut symbols = Vec::new();
    for (_, route) in vdso_time::routes().functions() {
        if let Route::Vdso {
            symbol,
            version: Some(version),
            ..
        } = route
        {
            symbols.push((symbol, version));
        }
    }
    symbols
}

/// Reads the counter clock until its calibration is over.
pub fn settle() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(50) {
        counter::CounterMonotonicUnordered::now().keep();
    }
}

/// Creates a row, with a contender for each name.
macro_rules! row {
    ($row:expr; $($name:expr => $call:expr),* $(,)?) => {
        Row::new($row, [$(Contender::new($name, move || $call)),*])
    };
}

pub fn clock_gettime(name: &str, clock: ClockId) -> Row {
    let mut row = row!(format!("clock_gettime({name})");
        OURS => vdso_time::clock_gettime(clock).keep(),
        SYSCALL => syscall::clock_gettime(clock).keep(),
        "libc" => libc_calls::clock_gettime(clock),
    );
    match clock {
        ClockId::MONOTONIC => row
            .contenders
            .push(Contender::new("std", || Instant::now().keep())),
        ClockId::REALTIME => row
            .contenders
            .push(Contender::new("std", || SystemTime::now().keep())),
        _ => {}
    }
    row
}

pub fn clock_getres(name: &str, clock: ClockId) -> Row {
    row!(format!("clock_getres({name})");
        OURS => vdso_time::clock_getres(clock).keep(),
        SYSCALL => syscall::clock_getres(clock).keep(),
        "libc" => libc_calls::clock_getres(clock),
    )
}

pub fn gettimeofday() -> Row {
    row!("gettimeofday()";
        OURS => vdso_time::gettimeofday().keep(),
        SYSCALL => syscall::gettimeofday().keep(),
        "libc" => libc_calls::gettimeofday(),
    )
}

pub fn time() -> Row {
    row!("time()";
        OURS => vdso_time::time().keep(),
        SYSCALL => syscall::try_time().keep(),
        "libc" => libc_calls::time(),
        "std" => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).keep(),
    )
}

pub fn getcpu() -> Row {
    row!("getcpu()";
        OURS => vdso_time::getcpu().keep(),
        SYSCALL => syscall::getcpu().keep(),
        "libc" => libc_calls::getcpu(),
    )
}

fn syscall_time() -> Row {
    row!(SYSCALL_TIME;
        OURS => syscall::try_time().keep(),
        "libc" => libc_calls::syscall_of(ClockId::REALTIME_COARSE),
    )
}

/// Reads the counter.
#[inline]
fn ticks() -> u64 {
    counter::Ticks::read().as_raw()
}

/// Reads the counter after everything before it is done.
#[inline]
fn ticks_ordered() -> u64 {
    counter::Ticks::read_ordered().as_raw()
}

/// Returns the time since a start, as the linear function does.
#[inline]
fn line_since(start: u64, ticks: impl FnOnce() -> u64) -> Duration {
    Duration::from_nanos(floor::line(ticks).wrapping_sub(start))
}

fn counters() -> [Row; 5] {
    let [
        unordered,
        unordered_elapsed,
        ordered,
        ordered_elapsed,
        realtime,
    ] = COUNTERS;
    let unordered_start = counter::CounterMonotonicUnordered::now();
    let ordered_start = counter::CounterMonotonic::now();
    let line_start = floor::line(ticks);
    [
        row!(unordered;
            OURS => counter::CounterMonotonicUnordered::now().keep(),
            TICKS => ticks().keep(),
            LINE => floor::line(ticks).keep(),
            SYSCALL => syscall::clock_gettime(ClockId::MONOTONIC).keep(),
        ),
        row!(unordered_elapsed;
            OURS => unordered_start.elapsed().keep(),
            TICKS => ticks().keep(),
            LINE => line_since(line_start, ticks).keep(),
        ),
        row!(ordered;
            OURS => counter::CounterMonotonic::now().keep(),
            TICKS => ticks_ordered().keep(),
            LINE => floor::line(ticks_ordered).keep(),
        ),
        row!(ordered_elapsed;
            OURS => ordered_start.elapsed().keep(),
            TICKS => ticks_ordered().keep(),
            LINE => line_since(line_start, ticks_ordered).keep(),
        ),
        row!(realtime;
            OURS => counter::CounterRealtimeUnordered::now().keep(),
            TICKS => ticks().keep(),
            LINE => floor::line(ticks).keep(),
            SYSCALL => syscall::gettimeofday().keep(),
        ),
    ]
}

/// Go's `time.Now`: `CLOCK_REALTIME` and `CLOCK_MONOTONIC`.
fn time_now() -> Row {
    const BOTH: [ClockId; 2] = [ClockId::REALTIME, ClockId::MONOTONIC];
    row!(TIME_NOW;
        OURS => BOTH.map(|clock| vdso_time::clock_gettime(clock).keep()).keep(),
        SYSCALL => BOTH.map(|clock| syscall::clock_gettime(clock).keep()).keep(),
        "libc" => BOTH.map(libc_calls::clock_gettime).keep(),
        "std" => {
            SystemTime::now().keep();
            Instant::now().keep();
        },
    )
}

/// Keeps an answer that comes in registers.
#[inline]
pub fn keep<T>(answer: T) {
    black_box(answer);
}
