//! The tracers of the crate, with known events and with reads.

use vdso_time::{ClockId, Instant, getcpu, syscall, time};
use vdso_time_trace::{
    Counter, Event, PerSite, Reading, Ring, Select, Slow, Tracer, detach, report, sites, traced,
};

use crate::{attach_to, leak, site};

#[test]
fn a_counter_has_the_calls_and_the_first_and_last_time() {
    let _ = || traced!("by hand", time());
    let counter = leak(Counter::new());
    assert_eq!((counter.calls(), counter.first(), counter.last()), (0, None, None));
    for reading in
        [Reading::Nanos(7), Reading::Nanos(8), Reading::Cpu(1), Reading::Seconds(3), Reading::Nanos(9)]
    {
        Tracer::new(counter).call(&Event::new(site("by hand"), reading));
    }
    assert_eq!((counter.calls(), counter.first(), counter.last()), (5, Some(7), Some(9)));
}

#[test]
fn a_ring_has_the_last_events() {
    let read = |odd: bool| if odd { traced!("ring/1", time()) } else { traced!("ring/0", time()) };
    let ring = leak(Ring::<4>::new());
    assert_eq!(ring.events().count(), 0);
    attach_to(ring, "ring/*");
    let mut earlier = Instant::now().as_nanos();
    for number in 0..11_u64 {
        read(number % 2 == 1);
        let events: Vec<_> = ring.events().collect();
        assert!(events.iter().map(|event| event.number).eq(number.saturating_sub(3)..=number), "{events:?}");
        for event in &events {
            assert_eq!(event.site.name(), format!("ring/{}", event.number % 2));
            assert_eq!(event.cpu.is_some(), getcpu().is_ok());
        }
        assert!(events.is_sorted_by_key(|event| event.nanos) && earlier <= events.last().unwrap().nanos);
        earlier = Instant::now().as_nanos();
    }
    assert_eq!(ring.lost(), 0);
}

#[test]
fn a_slow_read_takes_longer_than_the_threshold() {
    let read = || traced!("slow", syscall::clock_gettime(ClockId::MONOTONIC));
    let tracers = [Slow::with_threshold(u64::MAX), Slow::with_threshold(1), Slow::new()].map(leak);
    let [never, always, default] = tracers;
    assert_eq!((never.threshold(), default.threshold()), (Some(u64::MAX), None));
    for slow in tracers {
        attach_to(slow, "slow");
    }
    for _ in 0..100 {
        read().unwrap();
    }
    assert!(tracers.iter().all(|slow| slow.reads() == 100));
    assert_eq!(never.slow(), 0);
    assert!(always.longest() > 1 && always.longest() == never.longest());
    // It must follow from what was measured, however fast this machine's system calls are.
    assert_eq!(default.slow() > 0, default.longest() > default.threshold().unwrap());
}

#[test]
fn a_tracer_per_site_keeps_sites_separate_and_the_report_sorts_them() {
    let often = || traced!("per site/often", time());
    let seldom = || traced!("per site/seldom", time());
    let counters: &'static PerSite<Counter, 64> = leak(PerSite::new());
    let without_room: &'static PerSite<Slow, 0> = leak(PerSite::new());
    attach_to(counters, "per site/*");
    let tracer = attach_to(without_room, "per site/*");
    let _ = (often(), seldom(), often(), often());
    detach(tracer, Select::All);
    assert_eq!(without_room.missed(), 4);

    let report = report(counters);
    let rows: Vec<_> = report.rows().map(|(site, calls)| (site.name(), calls)).collect();
    assert_eq!(rows.len(), sites().len());
    assert_eq!(rows[..2], [("per site/often", 3), ("per site/seldom", 1)]);
    assert!(rows[2..].iter().all(|(_, calls)| *calls == 0));
    let text = report.to_string();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), sites().len() + 1);
    assert_eq!(lines[0], ["calls", "site", "function", "where"]);
    let place = format!("{}:{}", file!(), site("per site/often").line());
    assert_eq!(lines[1], ["3", "per", "site/often", "time", place.as_str()]);
}
