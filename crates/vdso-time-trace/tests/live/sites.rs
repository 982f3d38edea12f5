//! The list of sites, and the value of `traced!`.

use vdso_time::{Clock as _, ClockId, Errno, Instant, MonotonicCoarse, SystemTime, clock_gettime};
use vdso_time_trace::{Site, sites, traced};

use crate::site;

fn called() -> Result<i64, Errno> {
    traced!("called", vdso_time::try_time())
}

#[allow(dead_code, reason = "its site is listed all the same")]
fn never_called() -> i64 {
    traced!("never called", vdso_time::time())
}

/// Many functions, one place in the source.
fn generic<T>(answer: T) -> (T, Instant) {
    (answer, traced!("generic", Instant::now()))
}

fn unnamed() -> Instant<MonotonicCoarse> {
    traced!(MonotonicCoarse::now())
}

#[test]
fn each_use_is_a_site_whether_it_is_called_or_not() {
    assert!(called().is_ok());
    let _ = (generic(1), generic("x"), unnamed());
    for (name, function, line) in [
        ("called", "vdso_time::try_time", 9),
        ("never called", "vdso_time::time", 14),
        ("generic", "Instant::now", 19),
        ("live::sites", "MonotonicCoarse::now", 23),
    ] {
        let text = format!("{name}: {function} ({}:{line})", file!());
        assert_eq!(site(name).to_string(), text);
    }
}

#[test]
fn a_site_has_the_index_of_its_place_in_the_list() {
    static ELSEWHERE: Site = Site::new("elsewhere", "time()", "", 0);

    assert!(sites().iter().map(Site::index).eq((0..sites().len()).map(Some)));
    assert_eq!(ELSEWHERE.index(), None);
}

#[test]
fn the_value_is_that_of_the_call() {
    // The caller's names, in a call that returns early.
    fn read(answer: ClockId) -> Result<i64, Errno> {
        const SITE: i64 = 0;
        Ok(traced!("?", clock_gettime(answer)?).tv_sec + SITE)
    }

    let before = clock_gettime(ClockId::MONOTONIC).unwrap().tv_sec;
    let now = read(ClockId::MONOTONIC).unwrap();
    assert!(before <= now && now <= clock_gettime(ClockId::MONOTONIC).unwrap().tv_sec);
    assert_eq!(read(ClockId::from_raw(-1)), Err(Errno::EINVAL));
    // An expression may have two sites, and an argument may have one.
    let apart = traced!("later", Instant::now()).duration_since(traced!("argument", Instant::now()));
    assert!(apart.is_zero());
    let _ = traced!("wall clock", SystemTime::now(),);
}
