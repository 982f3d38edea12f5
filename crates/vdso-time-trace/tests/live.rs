//! Tracing in this process: the list of sites, the value of `traced!`, and the events of tracers.

#![cfg(feature = "enabled")]

use std::ptr;
use std::sync::Mutex;
use std::thread;

use vdso_time::{
    ClockId, Errno, Instant, MonotonicClock, MonotonicCoarse, SystemTime, clock_gettime, getcpu,
    gettimeofday, time,
};
use vdso_time_trace::{Counter, Site, Trace, Tracer, report, sites, traced};

fn called() -> Result<i64, Errno> {
    traced!("called", vdso_time::try_time())
}

#[allow(dead_code, reason = "its site is listed all the same")]
fn never_called() -> i64 {
    traced!("never called", time())
}

/// Becomes several functions, but has one location in the source.
fn generic<T>(answer: T) -> (T, Instant) {
    (answer, traced!("generic", Instant::now()))
}

fn unnamed() -> Instant<MonotonicCoarse> {
    traced!(MonotonicCoarse::now())
}

/// A macro of the program. The compiler prints its tokens with spaces in between.
macro_rules! stamp {
    ($name:literal, $($clock:tt)::+) => {
        traced!($name, $($clock)::+ ())
    };
}

struct Clock<T>(T);

impl<T: Copy + Into<i64>> Clock<T> {
    fn now(&self) -> i64 {
        self.0.into()
    }
}

#[test]
fn the_function_has_no_spaces_even_inside_a_macro() {
    let clock = Clock(5_i32);
    let _ = stamp!("macro/path", MonotonicCoarse::now);
    let _ = stamp!("macro/absolute path", vdso_time::RealtimeCoarse::now);
    let _ = traced!("spaces", Instant::now());
    let _ = traced!("words", <MonotonicCoarse as MonotonicClock>::now());
    let _ = traced!("generic function", Clock::<i32>::now(&clock));
    let _ = traced!("method", clock.now());
    for (name, function) in [
        ("macro/path", "MonotonicCoarse::now"),
        ("macro/absolute path", "vdso_time::RealtimeCoarse::now"),
        ("spaces", "Instant::now"),
        ("words", "<MonotonicCoarse as MonotonicClock>::now"),
        ("generic function", "Clock::<i32>::now"),
        ("method", "clock.now"),
    ] {
        assert_eq!(site(name).function(), function);
    }
}

/// Returns the only site with this name.
fn site(name: &str) -> &'static Site {
    let found: Vec<_> = sites().iter().filter(|site| site.name() == name).collect();
    let [site] = found[..] else {
        panic!("{name}: {found:?}")
    };
    site
}

fn tracer<T: Trace>(target: T) -> (&'static T, &'static Tracer) {
    let target = Box::leak(Box::new(target));
    (target, Box::leak(Box::new(Tracer::new(target))))
}

#[test]
fn each_use_is_a_site_whether_it_is_called_or_not() {
    static ELSEWHERE: Site = Site::new("elsewhere", b"time", "", 0);

    assert!(called().is_ok());
    let _ = (generic(1), generic("x"), unnamed());
    for (name, function, line) in [
        ("called", "vdso_time::try_time", 16),
        ("never called", "time", 21),
        ("generic", "Instant::now", 26),
        ("live", "MonotonicCoarse::now", 30),
    ] {
        assert_eq!(
            site(name).to_string(),
            format!("{name}: {function} ({}:{line})", file!())
        );
    }
    assert!(
        sites()
            .iter()
            .map(Site::index)
            .eq((0..sites().len()).map(Some))
    );
    assert_eq!(ELSEWHERE.index(), None);
}

#[test]
fn the_value_is_that_of_the_call() {
    // The call returns early, and uses names that the macro could use as well.
    fn read(answer: ClockId) -> Result<i64, Errno> {
        const SITE: i64 = 0;
        Ok(traced!("?", clock_gettime(answer)?).tv_sec + SITE)
    }

    let before = clock_gettime(ClockId::MONOTONIC).unwrap().tv_sec;
    let now = read(ClockId::MONOTONIC).unwrap();
    assert!(before <= now && now <= clock_gettime(ClockId::MONOTONIC).unwrap().tv_sec);
    assert_eq!(read(ClockId::from_raw(-1)), Err(Errno::EINVAL));
    // An expression may have two sites, and an argument may have one.
    let apart =
        traced!("later", Instant::now()).duration_since(traced!("argument", Instant::now()));
    assert!(apart.is_zero());
}

/// Keeps all events.
#[derive(Default)]
struct Log(Mutex<Vec<(&'static Site, Option<i64>)>>);

impl Trace for Log {
    fn event(&self, site: &'static Site, nanos: Option<i64>) {
        self.0.lock().unwrap().push((site, nanos));
    }
}

#[test]
fn an_event_has_the_site_and_the_time_that_was_read() {
    let (log, tracer) = tracer(Log::default());
    for site in sites() {
        if site.name().starts_with("read/") {
            assert!(!site.is_traced());
            assert!(site.set_tracer(Some(tracer)).is_none());
            assert!(site.is_traced());
        }
    }
    let last = |name: &str| {
        let (from, nanos) = log.0.lock().unwrap().pop().expect("an event");
        assert!(ptr::eq(from, site(name)));
        nanos
    };
    let nanos = |seconds: i64, nanos: i64| Some(seconds * 1_000_000_000 + nanos);
    let seconds = traced!("read/seconds", time());
    assert_eq!(last("read/seconds"), nanos(seconds, 0));
    let read = traced!("read/timespec", clock_gettime(ClockId::REALTIME)).unwrap();
    assert_eq!(last("read/timespec"), nanos(read.tv_sec, read.tv_nsec));
    let read = traced!("read/timeval", gettimeofday()).unwrap();
    assert_eq!(
        last("read/timeval"),
        nanos(read.tv_sec, read.tv_usec * 1000)
    );
    let read = traced!("read/instant", Instant::now());
    assert_eq!(last("read/instant"), Some(read.as_nanos()));
    let read = traced!("read/system time", SystemTime::now());
    assert_eq!(
        last("read/system time").map(i128::from),
        Some(read.as_nanos())
    );
    assert!(traced!("read/cpu", getcpu()).is_ok());
    assert_eq!(last("read/cpu"), None);
    let error = traced!("read/error", clock_gettime(ClockId::from_raw(-1)));
    assert_eq!((error, last("read/error")), (Err(Errno::EINVAL), None));
    assert!(log.0.lock().unwrap().is_empty());
}

#[test]
fn each_read_is_one_event_of_one_tracer_while_tracers_are_exchanged() {
    const READS: u64 = 20_000;
    let read = || (0..READS).for_each(|_| _ = traced!("exchanged", time()));
    let (one, first) = tracer(Counter::new());
    let (other, second) = tracer(Counter::new());
    let site = site("exchanged");
    site.set_tracer(Some(first));
    thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(read));
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            assert!(ptr::eq(site.set_tracer(Some(second)).unwrap(), first));
            assert!(ptr::eq(site.set_tracer(Some(first)).unwrap(), second));
        }
    });
    assert!(site.set_tracer(None).is_some());
    read();
    assert_eq!(one.calls() + other.calls(), 4 * READS);
}

#[test]
fn an_array_counts_each_site_separately_and_the_report_sorts_them() {
    let often = || traced!("per site/often", time());
    let seldom = || traced!("per site/seldom", time());
    let none: [Counter; 0] = [];
    let ((counters, none), tracer) = tracer(([const { Counter::new() }; 64], none));
    for name in ["per site/often", "per site/seldom"] {
        site(name).set_tracer(Some(tracer));
    }
    let _ = (often(), seldom(), often(), often());
    let text = report(counters).to_string();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), sites().len() + 1);
    assert_eq!(lines[0], ["calls", "site", "function", "where"]);
    let places = ["often", "seldom"].map(|name| {
        let line = site(&format!("per site/{name}")).line();
        format!("{}:{line}", file!())
    });
    assert_eq!(
        lines[1],
        ["3", "per", "site/often", "time", places[0].as_str()]
    );
    assert_eq!(
        lines[2],
        ["1", "per", "site/seldom", "time", places[1].as_str()]
    );
    assert!(lines[3..].iter().all(|line| line[0] == "0"));
    let missed = format!("{} more sites have no counter\n", sites().len());
    assert!(report(none).to_string().ends_with(&missed));
}
