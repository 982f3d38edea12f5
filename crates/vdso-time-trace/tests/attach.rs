//! Attaching and detaching: by site, by name, by function; the links it takes; who is told of what.

#![cfg(feature = "enabled")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use vdso_time::{Clock as _, Errno, time};
use vdso_time_trace::{
    Counter, Event, Link, Reading, Select, Site, Trace, Tracer, attach, detach, sites, traced,
};

/// Counts its events and says whether the last was timed.
#[derive(Default)]
struct Seen {
    events: AtomicUsize,
    last: Mutex<Option<Event>>,
    attached: AtomicUsize,
}

impl Trace for Seen {
    fn attached(&self) {
        self.attached.fetch_add(1, Ordering::Relaxed);
    }

    fn event(&self, event: &Event) {
        self.events.fetch_add(1, Ordering::Relaxed);
        *self.last.lock().unwrap() = Some(*event);
    }
}

impl Seen {
    fn events(&self) -> usize {
        self.events.load(Ordering::Relaxed)
    }

    fn last(&self) -> Event {
        self.last.lock().unwrap().expect("an event")
    }
}

/// The same, timed.
#[derive(Default)]
struct Timed(Seen);

impl Trace for Timed {
    const TIMED: bool = true;

    fn event(&self, event: &Event) {
        self.0.event(event);
    }
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn seen() -> (&'static Seen, &'static Tracer) {
    let seen = leak(Seen::default());
    (seen, leak(Tracer::new(seen)))
}

fn links<const N: usize>() -> &'static [Link] {
    leak(Link::array::<N>())
}

fn site(name: &str) -> &'static Site {
    sites().iter().find(|site| site.name() == name).expect(name)
}

#[test]
fn a_tracer_is_told_from_when_it_is_attached_until_it_is_detached() {
    let read = || traced!("one", time());
    let (seen, tracer) = seen();
    let links = links::<1>();
    read();
    for round in 1..=3 {
        assert!(!site("one").is_traced());
        assert_eq!(attach(tracer, Select::Name("one"), links), Ok(1));
        assert!(site("one").is_traced());
        assert_eq!(attach(tracer, Select::Name("one"), links), Ok(0), "it is there already");
        let answer = read();
        read();
        assert_eq!(seen.events(), 2 * round);
        assert!(std::ptr::eq(seen.last().site(), site("one")));
        assert!(
            matches!(seen.last().reading(), Reading::Seconds(seconds) if (answer..=answer + 1).contains(&seconds))
        );
        assert_eq!(seen.last().span(), None);
        assert_eq!(seen.attached.load(Ordering::Relaxed), 2 * round);
        assert_eq!(detach(tracer, Select::Name("one")), 1);
        assert_eq!(detach(tracer, Select::Name("one")), 0);
        read();
        assert_eq!(seen.events(), 2 * round);
    }
}

#[test]
fn several_are_told_and_none_of_another_site() {
    let read = || traced!("several", time());
    let other = || traced!("another", time());
    let tracers: Vec<_> = (0..5).map(|_| seen()).collect();
    let links = links::<6>();
    for (number, (_, tracer)) in tracers.iter().enumerate() {
        attach(tracer, Select::Site(site("several")), links).unwrap();
        read();
        other();
        let told: Vec<usize> = tracers.iter().map(|(seen, _)| seen.events()).collect();
        let expected: Vec<usize> = (0..5).map(|of| (number + 1_usize).saturating_sub(of)).collect();
        assert_eq!(told, expected);
    }
    // From the middle, from the ends, until one is left, and none.
    for gone in [2, 0, 4, 1, 3] {
        assert_eq!(detach(tracers[gone].1, Select::All), 1);
        let before: Vec<usize> = tracers.iter().map(|(seen, _)| seen.events()).collect();
        read();
        for (of, (seen, tracer)) in tracers.iter().enumerate() {
            let is_there = detach(tracer, Select::All) == 1;
            assert_eq!(seen.events() - before[of], usize::from(is_there), "{of} after {gone}");
            if is_there {
                attach(tracer, Select::Site(site("several")), links).unwrap();
            }
        }
    }
    assert!(!site("several").is_traced());
}

#[test]
fn too_few_links_change_nothing() {
    let _ = || (traced!("full/a", time()), traced!("full/b", time()), traced!("full/c", time()));
    let (_, tracer) = seen();
    let links = links::<2>();
    let full = attach(tracer, Select::Name("full/*"), links).unwrap_err();
    assert_eq!(full.missing(), 1);
    assert_eq!(full.to_string(), "1 links too few for the sites");
    assert!(links.iter().all(|link| !link.is_taken()));
    assert!(["full/a", "full/b", "full/c"].iter().all(|name| !site(name).is_traced()));
    assert_eq!(attach(tracer, Select::Name("full/a"), links), Ok(1));
    assert_eq!(attach(tracer, Select::Name("full/*"), links).unwrap_err().missing(), 1);
    assert!(!site("full/b").is_traced());
}

#[test]
fn a_link_belongs_to_its_site_for_ever() {
    let _ = || (traced!("for ever/a", time()), traced!("for ever/b", time()));
    let ((_, first), (_, second)) = (seen(), seen());
    let links = links::<1>();
    assert_eq!(attach(first, Select::Name("for ever/a"), links), Ok(1));
    detach(first, Select::All);
    assert!(links[0].is_taken());
    assert!(attach(first, Select::Name("for ever/b"), links).is_err());
    // Another tracer of that site needs no new one.
    assert_eq!(attach(second, Select::Name("for ever/a"), &[]), Ok(1));
    assert_eq!(attach(first, Select::Name("for ever/a"), &[]).unwrap_err().missing(), 1);
}

#[test]
fn sites_are_selected_by_function() {
    let coarse = || traced!("function/a", vdso_time::MonotonicCoarse::now());
    let seconds = || traced!("function/b", vdso_time::try_time());
    let (seen, tracer) = seen();
    assert_eq!(attach(tracer, Select::Function("try_time"), links::<1>()), Ok(1));
    let _ = (coarse(), seconds());
    assert_eq!((seen.events(), seen.last().site().name()), (1, "function/b"));
    assert_eq!(attach(tracer, Select::Function("MonotonicCoarse::now"), links::<1>()), Ok(1));
    let _ = (seconds(), coarse());
    assert_eq!((seen.events(), seen.last().site().name()), (3, "function/a"));
    assert_eq!(attach(tracer, Select::Function("Coarse::now"), &[]), Ok(0));
}

#[test]
fn what_was_read_is_told_with_what_went_wrong() {
    let fail = || traced!("fails", vdso_time::clock_gettime(vdso_time::ClockId::from_raw(-1)));
    let cpu = || traced!("cpu", vdso_time::getcpu());
    let (seen, tracer) = seen();
    attach(tracer, Select::Name("fails"), links::<1>()).unwrap();
    attach(tracer, Select::Name("cpu"), links::<1>()).unwrap();
    assert_eq!(fail(), Err(Errno::EINVAL));
    assert_eq!((seen.last().reading(), seen.last().nanos()), (Reading::Failed(Errno::EINVAL), None));
    assert!(cpu().is_ok());
    assert!(matches!(seen.last().reading(), Reading::Cpu(_)));
}

#[test]
fn a_timed_tracer_has_its_reads_timed_and_others_see_it() {
    let read = || traced!("timed", vdso_time::Instant::now());
    let (seen, tracer) = seen();
    let timed = leak(Timed::default());
    let clock = leak(Tracer::new(timed));
    let links = links::<2>();
    attach(clock, Select::Name("timed"), links).unwrap();
    let is_around = |event: Event, nanos: i64| {
        let (start, end) = event.span().expect("it is timed");
        assert!(start <= nanos && nanos <= end, "{event:?}");
        assert!(
            event.cost().unwrap() < (end - start) as u64,
            "what lies between two times is no cost of the read"
        );
    };
    let nanos = read().as_nanos();
    is_around(timed.0.last(), nanos);
    attach(tracer, Select::Name("timed"), links).unwrap();
    let nanos = read().as_nanos();
    is_around(timed.0.last(), nanos);
    is_around(seen.last(), nanos);
    detach(clock, Select::All);
    read();
    assert_eq!((seen.events(), seen.last().span()), (2, None));
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

#[test]
fn those_who_attach_at_once_take_turns() {
    let _ = || traced!("turns", time());
    let links = links::<8>();
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (_, tracer) = seen();
                start.wait();
                for _ in 0..5_000 {
                    assert_eq!(attach(tracer, Select::Name("turns"), links), Ok(1));
                    assert_eq!(detach(tracer, Select::Name("turns")), 1);
                }
            });
        }
    });
    assert!(!site("turns").is_traced());
}

#[test]
fn a_tracer_can_be_told_by_hand() {
    let counter: &'static Counter = leak(Counter::new());
    Tracer::new(counter).call(&Event::new(site("one"), Reading::Nanos(5)));
    assert_eq!((counter.calls(), counter.first(), counter.last()), (1, Some(5), Some(5)));
}
