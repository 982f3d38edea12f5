//! `attach` and `detach`: the events that a tracer receives, and the links that it needs.

use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use vdso_time::{Clock as _, ClockId, Errno, time};
use vdso_time_trace::{Event, Reading, Select, Trace, Tracer, attach, detach, traced};

use crate::{leak, links, site};

/// Keeps all events.
#[derive(Default)]
struct Log<const TIMED: bool> {
    events: Mutex<Vec<Event>>,
    attached: AtomicUsize,
}

impl<const TIMED: bool> Trace for Log<TIMED> {
    const TIMED: bool = TIMED;

    fn attached(&self) {
        self.attached.fetch_add(1, Ordering::Relaxed);
    }

    fn event(&self, event: &Event) {
        self.events.lock().unwrap().push(*event);
    }
}

impl<const TIMED: bool> Log<TIMED> {
    fn count(&self) -> usize {
        self.events.lock().unwrap().len()
    }

    fn last(&self) -> Event {
        *self.events.lock().unwrap().last().expect("an event")
    }
}

fn log<const TIMED: bool>() -> (&'static Log<TIMED>, &'static Tracer) {
    let log = leak(Log::default());
    (log, leak(Tracer::new(log)))
}

#[test]
fn a_tracer_receives_events_from_attach_to_detach() {
    let read = || traced!("one", time());
    let (log, tracer) = log::<false>();
    let links = links::<1>();
    read();
    for round in 1..=3 {
        assert!(!site("one").is_traced());
        assert_eq!(attach(tracer, Select::Name("one"), links), Ok(1));
        assert!(site("one").is_traced());
        assert_eq!(attach(tracer, Select::Name("one"), links), Ok(0), "it is attached already");
        assert_eq!(log.attached.load(Ordering::Relaxed), 2 * round);
        read();
        let seconds = read();
        assert_eq!(log.count(), 2 * round);
        assert!(ptr::eq(log.last().site(), site("one")));
        assert_eq!((log.last().reading(), log.last().span()), (Reading::Seconds(seconds), None));
        assert_eq!(detach(tracer, Select::Name("one")), 1);
        assert_eq!(detach(tracer, Select::Name("one")), 0);
        read();
        assert_eq!(log.count(), 2 * round);
    }
}

#[test]
fn each_attached_tracer_receives_each_event_and_none_of_another_site() {
    let read = || (traced!("several", time()), traced!("another", time()));
    let tracers = [(); 5].map(|()| log::<false>());
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
    let (_, tracer) = log::<false>();
    let links = links::<2>();
    let full = attach(tracer, Select::Name("full/*"), links).unwrap_err();
    assert_eq!((full.missing(), full.to_string().as_str()), (1, "1 links too few for the sites"));
    assert!(links.iter().all(|link| !link.is_taken()));
    assert!(["full/a", "full/b", "full/c"].iter().all(|name| !site(name).is_traced()));
}

#[test]
fn a_link_belongs_to_its_site_for_ever() {
    let _ = || (traced!("for ever/a", time()), traced!("for ever/b", time()));
    let [a, b] = [Select::Name("for ever/a"), Select::Name("for ever/b")];
    let ((_, first), (_, second)) = (log::<false>(), log::<false>());
    let links = links::<1>();
    assert_eq!(attach(first, a, links), Ok(1));
    assert_eq!(detach(first, Select::All), 1);
    assert!(links[0].is_taken());
    assert_eq!(attach(first, b, links).unwrap_err().missing(), 1);
    assert_eq!(attach(second, a, &[]), Ok(1), "it reuses the site's link");
    assert_eq!(attach(first, a, &[]).unwrap_err().missing(), 1);
}

#[test]
fn sites_are_selected_by_function() {
    let boottime = || traced!("function/a", vdso_time::Boottime::now());
    let resolution = || traced!("function/b", vdso_time::clock_getres(ClockId::MONOTONIC));
    let (log, tracer) = log::<false>();
    for (function, sites, count) in [("clock_getres", 1, 1), ("time::now", 0, 2), ("Boottime::now", 1, 4)] {
        assert_eq!(attach(tracer, Select::Function(function), links::<1>()), Ok(sites), "{function}");
        let _ = (resolution(), boottime());
        assert_eq!(log.count(), count, "{function}");
    }
    assert_eq!(log.last().site().name(), "function/a");
}

#[test]
fn an_event_has_the_reading_or_the_error() {
    let fail = || traced!("reading/fails", vdso_time::clock_gettime(ClockId::from_raw(-1)));
    let cpu = || traced!("reading/cpu", vdso_time::getcpu());
    let (log, tracer) = log::<false>();
    attach(tracer, Select::Name("reading/*"), links::<2>()).unwrap();
    assert_eq!(fail(), Err(Errno::EINVAL));
    assert_eq!((log.last().reading(), log.last().nanos()), (Reading::Failed(Errno::EINVAL), None));
    let cpu = cpu().unwrap().cpu;
    assert_eq!((log.last().reading(), log.last().nanos()), (Reading::Cpu(cpu), None));
}

#[test]
fn a_timed_tracer_has_the_reads_of_its_sites_timed() {
    let read = || traced!("timed", vdso_time::Instant::now());
    let ((log, tracer), (timed, clock)) = (log::<false>(), log::<true>());
    let links = links::<2>();
    attach(clock, Select::Name("timed"), links).unwrap();
    for events in [1, 2] {
        let nanos = read().as_nanos();
        assert_eq!(timed.count(), events);
        let (start, end) = timed.last().span().expect("a span");
        assert!(start <= nanos && nanos <= end, "{start} <= {nanos} <= {end}");
        assert!(timed.last().cost().unwrap() <= (end - start) as u64);
        attach(tracer, Select::Name("timed"), links).unwrap();
    }
    assert_eq!(log.last().span(), timed.last().span());
    detach(clock, Select::All);
    read();
    assert_eq!((log.count(), log.last().span()), (2, None));
}

#[test]
fn a_tracer_may_detach_itself() {
    struct Once(AtomicUsize);
    static ONCE: Once = Once(AtomicUsize::new(0));
    static TRACER: Tracer = Tracer::new(&ONCE);
    impl Trace for Once {
        fn event(&self, _: &Event) {
            self.0.fetch_add(detach(&TRACER, Select::All), Ordering::Relaxed);
        }
    }

    let read = || traced!("once", time());
    attach(&TRACER, Select::Name("once"), links::<1>()).unwrap();
    let _ = (read(), read());
    assert_eq!(ONCE.0.load(Ordering::Relaxed), 1);
    assert!(!site("once").is_traced());
}
