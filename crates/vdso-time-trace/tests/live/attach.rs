//! `attach` and `detach`: the links that they need, and the events that tracers receive.

use std::ptr;
use std::sync::Mutex;

use vdso_time::{ClockId, Errno, Instant, cpu, getcpu, time};
use vdso_time_trace::{Counter, Ring, Select, Site, Trace, Tracer, attach, detach, report, sites, traced};

use crate::{leak, links, site};

/// Keeps all events.
#[derive(Default)]
struct Log(Mutex<Vec<(&'static Site, Option<i64>)>>);

impl Trace for Log {
    fn event(&self, site: &'static Site, nanos: Option<i64>) {
        self.0.lock().unwrap().push((site, nanos));
    }
}

impl Log {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn last(&self) -> (&'static Site, Option<i64>) {
        *self.0.lock().unwrap().last().expect("an event")
    }
}

fn log() -> (&'static Log, &'static Tracer) {
    let log = leak(Log::default());
    (log, leak(Tracer::new(log)))
}

/// Attaches a tracer to the sites of a name.
fn attach_to(target: &'static dyn Trace, name: &str) {
    attach(leak(Tracer::new(target)), Select::Name(name), links::<8>()).unwrap();
}

#[test]
fn a_tracer_receives_events_from_attach_to_detach() {
    let read = || traced!("one", time());
    let (log, tracer) = log();
    let links = links::<1>();
    read();
    for round in 1..=3 {
        assert!(!site("one").is_traced());
        assert_eq!(attach(tracer, Select::Name("one"), links), Ok(1));
        assert!(site("one").is_traced());
        assert_eq!(attach(tracer, Select::Name("one"), links), Ok(0), "it is attached already");
        let _ = (read(), read());
        assert_eq!(log.count(), 2 * round);
        assert!(ptr::eq(log.last().0, site("one")));
        assert_eq!(detach(tracer, Select::Name("one")), 1);
        assert_eq!(detach(tracer, Select::Name("one")), 0);
        read();
        assert_eq!(log.count(), 2 * round);
    }
}

#[test]
fn each_attached_tracer_receives_each_event_and_none_of_another_site() {
    let read = || (traced!("several", time()), traced!("another", time()));
    let tracers = [(); 5].map(|()| log());
    let links = links::<5>();
    let mut attached = [false; 5];
    // Attaches all. Detaches in the middle, at the ends, and the rest.
    for number in [0, 1, 2, 3, 4, 2, 0, 4, 1, 3] {
        let (_, tracer) = tracers[number];
        if attached[number] {
            assert_eq!(detach(tracer, Select::All), 1);
        } else {
            assert_eq!(attach(tracer, Select::Site(site("several")), links), Ok(1));
        }
        attached[number] = !attached[number];
        let before = tracers.map(|(log, _)| log.count());
        read();
        let received: Vec<_> =
            tracers.iter().zip(before).map(|((log, _), before)| log.count() - before).collect();
        assert_eq!(received, attached.map(usize::from));
    }
    assert!(!site("several").is_traced());
}

#[test]
fn too_few_links_change_nothing() {
    let _ = || (traced!("full/a", time()), traced!("full/b", time()), traced!("full/c", time()));
    let (_, tracer) = log();
    let links = links::<2>();
    let full = attach(tracer, Select::Name("full/*"), links).unwrap_err();
    assert_eq!((full.missing, full.to_string().as_str()), (1, "1 links too few for the sites"));
    assert!(["full/a", "full/b", "full/c"].iter().all(|name| !site(name).is_traced()));
    for name in ["full/a", "full/b"] {
        assert_eq!(attach(tracer, Select::Name(name), links), Ok(1), "a link was lost");
    }
}

#[test]
fn a_link_belongs_to_its_site_for_ever() {
    let _ = || (traced!("for ever/a", time()), traced!("for ever/b", time()));
    let [a, b] = [Select::Name("for ever/a"), Select::Name("for ever/b")];
    let ((_, first), (_, second)) = (log(), log());
    let links = links::<1>();
    assert_eq!(attach(first, a, links), Ok(1));
    assert_eq!(detach(first, Select::All), 1);
    assert_eq!(attach(first, b, links).unwrap_err().missing, 1);
    assert_eq!(attach(second, a, &[]), Ok(1), "it reuses the site's link");
    assert_eq!(attach(first, a, &[]).unwrap_err().missing, 1);
}

#[test]
fn an_event_has_the_time_that_was_read() {
    let log = log().0;
    attach_to(log, "read/*");
    let nanos = |seconds: i64, nanos: i64| Some(seconds * 1_000_000_000 + nanos);
    let seconds = traced!("read/seconds", time());
    assert_eq!(log.last().1, nanos(seconds, 0));
    let read = traced!("read/timespec", vdso_time::clock_gettime(ClockId::REALTIME)).unwrap();
    assert_eq!(log.last().1, nanos(read.tv_sec, read.tv_nsec));
    let read = traced!("read/timeval", vdso_time::gettimeofday()).unwrap();
    assert_eq!(log.last().1, nanos(read.tv_sec, read.tv_usec * 1000));
    let read = traced!("read/instant", Instant::now());
    assert_eq!(log.last().1, Some(read.as_nanos()));
    let read = traced!("read/system time", vdso_time::SystemTime::now());
    assert_eq!(log.last().1, Some(read.as_nanos()));
    assert!(traced!("read/cpu", cpu()).is_ok() && traced!("read/cpu and node", getcpu()).is_ok());
    assert_eq!(log.last().1, None);
    let error = traced!("read/error", vdso_time::clock_gettime(ClockId::from_raw(-1)));
    assert_eq!((error, log.last().1), (Err(Errno::EINVAL), None));
    assert_eq!(log.count(), 8);
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
            assert_eq!(event.cpu.is_some(), cpu().is_ok());
        }
        assert!(events.is_sorted_by_key(|event| event.nanos) && earlier <= events.last().unwrap().nanos);
        earlier = Instant::now().as_nanos();
    }
    assert_eq!(ring.lost(), 0);
}

#[test]
fn an_array_counts_each_site_separately_and_the_report_sorts_them() {
    let [often, seldom] =
        [|| traced!("per site/often", time()), || traced!("per site/seldom", time())] as [fn() -> i64; 2];
    let counters: &'static [Counter; 64] = leak([const { Counter::new() }; 64]);
    let none: &'static [Counter; 0] = &[];
    attach_to(counters, "per site/*");
    attach_to(none, "per site/*");
    let _ = (often(), seldom(), often(), often());
    let text = report(counters).to_string();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), sites().len() + 1);
    assert_eq!(lines[0], ["calls", "site", "function", "where"]);
    let places = ["often", "seldom"].map(|name| {
        let line = site(&format!("per site/{name}")).line();
        format!("{}:{line}", file!())
    });
    assert_eq!(lines[1], ["3", "per", "site/often", "time", places[0].as_str()]);
    assert_eq!(lines[2], ["1", "per", "site/seldom", "time", places[1].as_str()]);
    assert!(lines[3..].iter().all(|line| line[0] == "0"));
    let missed = format!("{} more sites have no counter\n", sites().len());
    assert!(report(none).to_string().ends_with(&missed));
}
