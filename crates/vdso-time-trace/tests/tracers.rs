//! The tracers that come with the crate, told by hand of what is known, and by reads.

#![cfg(feature = "enabled")]

use std::thread;
use std::time::Duration;

use vdso_time::{ClockId, Instant, getcpu, syscall, time};
use vdso_time_trace::{
    Counter, Event, Fresh, Interval, Link, PerSite, Reading, Ring, Select, Site, Slow, Trace, Tracer, attach,
    detach, report, sites, traced,
};

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn site(name: &str) -> &'static Site {
    sites().iter().find(|site| site.name() == name).expect(name)
}

/// Attaches a tracer to the sites of a name.
fn attach_to<T: Trace>(tracer: &'static T, name: &str) -> &'static Tracer {
    let tracer = leak(Tracer::new(tracer));
    attach(tracer, Select::Name(name), leak(Link::array::<8>())).unwrap();
    tracer
}

#[test]
fn a_counter_has_the_calls_and_the_first_and_last_time() {
    let counter = Counter::new();
    assert_eq!((counter.calls(), counter.first(), counter.last()), (0, None, None));
    let site = site("histogram");
    let readings =
        [Reading::Nanos(7), Reading::Nanos(8), Reading::Cpu(1), Reading::Seconds(3), Reading::Nanos(9)];
    for reading in readings {
        counter.event(&Event::new(site, reading));
    }
    assert_eq!((counter.calls(), counter.first(), counter.last()), (5, Some(7), Some(9)));
}

#[test]
fn an_interval_has_what_reads_cost_and_how_far_they_are_apart() {
    let read = || traced!("histogram", vdso_time::clock_gettime(ClockId::MONOTONIC));
    let interval = leak(Interval::new());
    attach_to(interval, "histogram");
    let _ = (read(), read(), read());
    thread::sleep(Duration::from_millis(3));
    let _ = read();
    assert_eq!((interval.cost().count(), interval.between().count()), (4, 3));
    let longest = interval.between().quantile(1.0).unwrap();
    assert!(*longest.end() >= 3_000_000, "{longest:?}");
    assert!(interval.between().sum() >= 3_000_000);
    let close = interval.between().buckets().filter(|(between, _)| *between.end() < Interval::CLOSE);
    assert!(interval.close() >= close.map(|(_, count)| count).sum());
    assert!(interval.close() <= 2, "{:?}", interval.between());
}

#[test]
fn a_ring_has_the_last_events() {
    let read = |odd: bool| if odd { traced!("ring/1", time()) } else { traced!("ring/0", time()) };
    let ring = leak(Ring::<4>::new());
    assert_eq!(ring.events().count(), 0);
    attach_to(ring, "ring/*");
    let before = Instant::now().as_nanos();
    for number in 0..11 {
        read(number % 2 == 1);
        let events: Vec<_> = ring.events().collect();
        assert_eq!(events.len(), (number + 1).min(4) as usize);
        let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, ((number as u64).saturating_sub(3)..=number as u64).collect::<Vec<_>>());
        for event in &events {
            assert_eq!(event.site.name(), format!("ring/{}", event.number % 2));
            assert_eq!(event.cpu.is_some(), getcpu().is_ok());
        }
        let times: Vec<i64> = events.iter().map(|event| event.nanos).collect();
        assert!(times.is_sorted() && before <= times[0], "{before} {times:?}");
    }
    assert_eq!(ring.lost(), 0);
}

#[test]
fn a_slow_read_is_one_that_takes_longer_than_the_threshold() {
    let read = || traced!("slow", syscall::clock_gettime(ClockId::MONOTONIC));
    let never = leak(Slow::with_threshold(u64::MAX));
    let always = leak(Slow::with_threshold(1));
    let guess = leak(Slow::new());
    assert_eq!((never.threshold(), guess.threshold()), (Some(u64::MAX), None));
    for slow in [never, always, guess] {
        attach_to(slow, "slow");
    }
    for _ in 0..100 {
        read().unwrap();
    }
    assert!([never, always, guess].iter().all(|slow| slow.reads() == 100));
    assert_eq!(never.slow(), 0);
    assert!(always.longest() > 1 && always.longest() == never.longest());
    assert!(guess.threshold().is_some_and(|nanos| nanos > 0));
    // What it says must follow from what it saw, whatever this machine's system calls cost.
    assert_eq!(guess.slow() > 0, guess.longest() > guess.threshold().unwrap());
}

#[test]
fn per_site_keeps_sites_apart_and_the_report_sorts_them() {
    let often = || traced!("per site/often", time());
    let seldom = || traced!("per site/seldom", time());
    let counters: &'static PerSite<Counter, 64> = leak(PerSite::new());
    let few: &'static PerSite<Counter, 0> = leak(PerSite::new());
    attach_to(counters, "per site/*");
    let tracer = attach_to(few, "per site/*");
    let _ = (often(), seldom(), often(), often());
    let calls = |name| counters.of(site(name)).map(Counter::calls);
    assert_eq!((calls("per site/often"), calls("per site/seldom")), (Some(3), Some(1)));
    assert_eq!(few.missed(), 4);
    detach(tracer, Select::All);

    let report = report(counters);
    let rows: Vec<_> = report.rows().collect();
    assert_eq!(rows.len(), sites().len());
    assert!(rows.is_sorted_by(|one, other| one.1 >= other.1));
    assert_eq!((rows[0].0.name(), rows[0].1), ("per site/often", 3));
    assert_eq!((rows[1].0.name(), rows[1].1), ("per site/seldom", 1));
    let text = report.to_string();
    let mut lines = text.lines();
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    assert_eq!(words(lines.next().unwrap()), ["calls", "site", "function", "where"]);
    let line = words(lines.next().unwrap());
    let place = format!("{}:{}", site("per site/often").file(), site("per site/often").line());
    assert_eq!(line, ["3", "per", "site/often", "time", place.as_str()]);
    assert_eq!(text.lines().count(), sites().len() + 1);
}

#[test]
fn everything_can_be_per_site() {
    const fn fresh<T: Fresh>() -> PerSite<T, 2> {
        PerSite::new()
    }
    assert_eq!(fresh::<Counter>().missed() + fresh::<Interval>().missed() + fresh::<Slow>().missed(), 0);
    assert_eq!(fresh::<Ring<2>>().missed(), 0);
}
