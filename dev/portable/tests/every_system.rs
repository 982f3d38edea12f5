//! The clocks of every system: Linux's, and std's elsewhere.

use std::io;
use std::thread;
use std::time::{Duration, Instant as StdInstant, SystemTime as StdSystemTime};

use vdso_time::{
    ClockId, Errno, Instant, MonotonicCoarse, RealtimeCoarse, Route, SystemTime, Timespec,
    UNIX_EPOCH, clock_gettime, gettimeofday, routes, time, try_time,
};
use vdso_time_counter::{
    self as counter, CounterMonotonic, CounterMonotonicUnordered, CounterRealtimeUnordered, Status,
    Unavailable,
};
use vdso_time_trace::traced;

/// Whether std answers. The cfg makes it answer on Linux too.
const BY_STD: bool = cfg!(any(
    vdso_time_other_os,
    not(any(target_os = "linux", target_os = "android"))
));

/// Returns the seconds since the Epoch by std.
fn std_seconds() -> i64 {
    StdSystemTime::now()
        .duration_since(StdSystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs() as i64
}

/// Fails unless `read` is between two reads of std's clock. `time()` changes with the timer tick.
fn assert_bracketed(read: impl FnOnce() -> i64) {
    let before = std_seconds();
    let read = read();
    let after = std_seconds();
    assert!(
        (before - 1..=after).contains(&read),
        "{before} <= {read} <= {after}"
    );
}

#[test]
fn the_wall_clock_is_that_of_std() {
    assert_bracketed(time);
    assert_bracketed(|| try_time().unwrap());
    assert_bracketed(|| gettimeofday().unwrap().tv_sec);
    assert_bracketed(|| {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs() as i64
    });
    assert_bracketed(|| Timespec::from(RealtimeCoarse::now()).tv_sec);
    assert_bracketed(|| Timespec::from(CounterRealtimeUnordered::now()).tv_sec);
}

#[test]
fn a_traced_read_returns_what_the_read_does() {
    assert_bracketed(|| traced!("a name", time()));
    let start = traced!(Instant::now());
    assert!(start <= traced!(Instant::now()));
}

/// The length of a sleep.
#[derive(Debug)]
struct Slept {
    measured: Duration,
    /// The limits, from std's clock.
    least: Duration,
    most: Duration,
}

/// Sleeps, and measures that with a clock.
fn slept<T>(now: impl Fn() -> T, since: impl Fn(T) -> Duration) -> Slept {
    let outer = StdInstant::now();
    let start = now();
    let inner = StdInstant::now();
    thread::sleep(Duration::from_millis(30));
    let least = inner.elapsed();
    let measured = since(start);
    Slept {
        measured,
        least,
        most: outer.elapsed(),
    }
}

#[test]
fn an_interval_is_as_long_as_by_std() {
    let tick = Duration::from_millis(20); // a coarse clock's
    for slept in [
        slept(Instant::now, |start| start.elapsed()),
        slept(MonotonicCoarse::now, |start| start.elapsed()),
        slept(CounterMonotonic::now, |start| start.elapsed()),
        slept(CounterMonotonicUnordered::now, |start| start.elapsed()),
    ] {
        let least = slept.least.saturating_sub(tick);
        let most = slept.most + tick;
        assert!(slept.measured >= least, "{slept:?}");
        assert!(slept.measured <= most, "{slept:?}");
    }
}

#[test]
fn an_instant_converts_to_the_one_of_std_and_back() {
    let now = Instant::now();
    let std = StdInstant::from(now);
    assert_eq!(Instant::try_from(std).unwrap(), now);
    assert_eq!(
        StdInstant::from(now + Duration::from_secs(1)) - std,
        Duration::from_secs(1)
    );
}

#[test]
fn a_clock_that_does_not_exist_is_einval() {
    let error = clock_gettime(ClockId::from_raw(99)).unwrap_err();
    assert_eq!(error, Errno::EINVAL);
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidInput);
    assert_eq!(
        io::Error::from(Errno::ENOSYS).kind(),
        io::ErrorKind::Unsupported
    );
}

#[test]
fn the_routes_and_the_status_say_that_std_answers() {
    assert_eq!(
        routes().functions().all(|(_, route)| route == Route::Std),
        BY_STD,
        "{}",
        routes()
    );
    assert_eq!(
        counter::check().err() == Some(Unavailable::Unsupported),
        BY_STD
    );
    let _ = CounterMonotonicUnordered::now();
    assert_eq!(
        counter::state().status == Status::Unavailable(Unavailable::Unsupported),
        BY_STD
    );
    vdso_time::warm_up();
}
