//! Tracers come and go while eight threads read and a signal handler reads between their
//! instructions. A tracer that stays receives each read once.

#![allow(unsafe_code, reason = "signals are libc's")]

use std::mem;
use std::os::unix::thread::JoinHandleExt as _;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use vdso_time::time;
use vdso_time_trace::{
    Counter, Event, Interval, Link, Ring, Select, Slow, Trace, Tracer, attach, detach, traced,
};

const READS_OF_A_THREAD: usize = if cfg!(debug_assertions) { 20_000 } else { 100_000 };
const SITES: Select<'_> = Select::Name("storm/*");

static OVER: AtomicBool = AtomicBool::new(false);

/// The reads at each site.
static READS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn read(site: usize) {
    let _ = if site == 0 { traced!("storm/0", time()) } else { traced!("storm/1", time()) };
    READS[site].fetch_add(1, Ordering::Relaxed);
}

fn counts(counters: &[AtomicU64; 2]) -> [u64; 2] {
    counters.each_ref().map(|counter| counter.load(Ordering::Relaxed))
}

extern "C" fn handler(_: libc::c_int) {
    read(1);
}

/// Counts the events of each site.
struct BySite([AtomicU64; 2]);

impl Trace for BySite {
    fn event(&self, event: &Event) {
        self.0[usize::from(event.site().name() == "storm/1")].fetch_add(1, Ordering::Relaxed);
    }
}

static BY_SITE: BySite = BySite([const { AtomicU64::new(0) }; 2]);
static STAYS: Tracer = Tracer::new(&BY_SITE);
static COUNTERS: [Counter; 2] = [const { Counter::new() }; 2];
static INTERVAL: Interval = Interval::new();
static SLOW: Slow = Slow::new();
static RING: Ring<8> = Ring::new();
static COME_AND_GO: [Tracer; 5] = [
    Tracer::new(&COUNTERS[0]),
    Tracer::new(&COUNTERS[1]),
    Tracer::new(&INTERVAL),
    Tracer::new(&SLOW),
    Tracer::new(&RING),
];
static LINKS: [Link; 2 * (1 + COME_AND_GO.len())] = Link::array();

/// The events that each of `COME_AND_GO` received.
fn received() -> [u64; 5] {
    let ring = RING.events().last().map_or(0, |last| last.number + 1);
    [COUNTERS[0].calls(), COUNTERS[1].calls(), INTERVAL.cost().count(), SLOW.reads(), ring]
}

/// Attaches and detaches until the storm is over.
fn come_and_go(first: usize) {
    let mut turn = first;
    while !OVER.load(Ordering::Acquire) {
        let tracer = &COME_AND_GO[turn % COME_AND_GO.len()];
        attach(tracer, SITES, &LINKS).unwrap();
        // Also a tracer of the other thread, so that a chain gets into every state.
        detach(&COME_AND_GO[(turn * 4 + 1) % COME_AND_GO.len()], Select::Name("storm/1"));
        if turn % 3 != 0 {
            detach(tracer, SITES);
        }
        turn += 1;
    }
}

#[test]
fn no_event_is_lost_or_doubled() {
    // SAFETY: zeros are a valid sigaction.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler makes only calls that are async-signal-safe.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, null_mut()) }, 0);

    attach(&STAYS, SITES, &LINKS).unwrap();
    let changing = [0, 1].map(|first| thread::spawn(move || come_and_go(first)));
    let read_all = |number| (0..READS_OF_A_THREAD).for_each(|turn| read((number + turn) % 2));
    let reading = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| thread::spawn(move || read_all(number)));
    while !reading.iter().all(JoinHandle::is_finished) {
        for thread in &reading {
            // SAFETY: a thread that was not joined may be signalled, also after it has ended.
            unsafe { libc::pthread_kill(thread.as_pthread_t() as _, libc::SIGUSR1) };
        }
        thread::sleep(Duration::from_micros(50));
    }
    OVER.store(true, Ordering::Release);
    reading.into_iter().chain(changing).for_each(|thread| thread.join().unwrap());

    let total: u64 = counts(&READS).iter().sum();
    assert!(total > 8 * READS_OF_A_THREAD as u64, "no signal was handled");
    assert_eq!(counts(&BY_SITE.0), counts(&READS));
    assert!(received().iter().all(|received| *received <= total), "{:?} of {total}", received());

    // Without further changes each attached tracer receives each read once, and no other does.
    for attached in [true, false] {
        for tracer in &COME_AND_GO {
            if attached {
                attach(tracer, SITES, &LINKS).unwrap();
            } else {
                assert_eq!(detach(tracer, SITES), 2);
            }
        }
        let before = received();
        (0..1000).for_each(|turn| read(turn % 2));
        assert_eq!(received(), before.map(|before| before + if attached { 1000 } else { 0 }));
    }
    assert!(RING.events().map(|event| event.site.name()).is_sorted_by(|one, other| one != other));
    assert_eq!(detach(&STAYS, SITES), 2);
}
