//! The list of sites: all that are linked, called or not, with what the source says of them.

#![cfg(feature = "enabled")]

use vdso_time::{Clock as _, ClockId, Instant, MonotonicCoarse, SystemTime, Timespec, clock_gettime};
use vdso_time_trace::{Site, sites, traced};

fn called() -> Result<i64, vdso_time::Errno> {
    traced!("called", vdso_time::try_time())
}

/// Nobody calls it.
#[allow(dead_code, reason = "the site is there all the same")]
fn never_called() -> i64 {
    traced!("never called", vdso_time::time())
}

/// Many functions, one place in the source.
fn generic<T>(answer: T) -> (T, Instant) {
    (answer, traced!("generic", Instant::now()))
}

mod inner {
    use vdso_time::Clock as _;

    pub(crate) fn unnamed() -> vdso_time::Instant<vdso_time::MonotonicCoarse> {
        vdso_time_trace::traced!(vdso_time::MonotonicCoarse::now())
    }
}

fn question_mark(clock: ClockId) -> Result<Timespec, vdso_time::Errno> {
    let answer = traced!("question mark", clock_gettime(clock))?;
    Ok(answer)
}

fn named(name: &str) -> Vec<&'static Site> {
    sites().iter().filter(|site| site.name() == name).collect()
}

#[test]
fn each_use_is_a_site_called_or_not() {
    assert!(called().is_ok());
    let _ = (generic(1), generic("x"), inner::unnamed());
    for (name, function, line) in [
        ("called", "vdso_time::try_time", 9),
        ("never called", "vdso_time::time", 15),
        ("generic", "Instant::now", 20),
        ("sites::inner", "vdso_time::MonotonicCoarse::now", 27),
    ] {
        let [site] = named(name)[..] else { panic!("{name}: {:?}", named(name)) };
        assert_eq!((site.function(), site.line()), (function, line), "{name}");
        assert!(site.file().ends_with("tests/sites.rs"), "{}", site.file());
    }
}

/// In no list.
static ELSEWHERE: Site = Site::new("elsewhere", "time()", "", 0);

#[test]
fn a_site_knows_its_place() {
    assert!(sites().len() >= 5);
    for (index, site) in sites().iter().enumerate() {
        assert_eq!(site.index(), Some(index));
        assert_eq!(site.index(), Some(index), "once more, as it was kept");
    }
    assert_eq!(ELSEWHERE.index(), None);
}

/// Lists of the linker are known by their names alone, in the whole program.
mod elsewhere {
    use vdso_time_trace::hidden::linkme;

    #[linkme::distributed_slice]
    #[linkme(crate = linkme)]
    pub(crate) static SITES: [u8];
}

#[test]
fn a_list_of_somebody_else_is_not_ours() {
    assert!(elsewhere::SITES.is_empty());
    assert!(sites().len() >= 5);
}

#[test]
fn a_name_in_the_call_is_the_caller_s() {
    const SITE: ClockId = ClockId::MONOTONIC;
    assert!(traced!("a name", clock_gettime(SITE)).is_ok());
}

#[test]
fn the_value_is_that_of_the_call() {
    let bracket = |read: fn() -> Timespec| {
        let before = clock_gettime(ClockId::MONOTONIC).unwrap();
        let read = read();
        assert!(before <= read && read <= clock_gettime(ClockId::MONOTONIC).unwrap());
    };
    bracket(|| question_mark(ClockId::MONOTONIC).unwrap());
    assert_eq!(question_mark(ClockId::from_raw(-1)), Err(vdso_time::Errno::EINVAL));
    // A clock may be read twice in an expression, and a site may be in an argument.
    let apart = traced!(Instant::now()).duration_since(traced!("earlier", Instant::now()));
    assert!(apart.is_zero());
    let _ = (traced!(SystemTime::now()), traced!(MonotonicCoarse::now()));
}

#[test]
fn a_site_is_displayed_with_all_that_is_known() {
    let [site] = named("called")[..] else { panic!("{:?}", named("called")) };
    assert_eq!(site.to_string(), format!("called: vdso_time::try_time ({}:9)", file!()));
}
