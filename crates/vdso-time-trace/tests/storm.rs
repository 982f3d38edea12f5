//! Tracers come and go while eight threads read, and a signal handler reads in the midst of them: a tracer that stays is told of every
//! read once, and the others of every read once when nothing changes any more.

#![cfg(feature = "enabled")]
#![allow(unsafe_code, reason = "signals are libc's")]

use std::mem;
use std::ptr::null_mut;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use vdso_time::time;
use vdso_time_trace::{
    Counter, Event, Interval, Link, Ring, Select, Slow, Trace, Tracer, attach, detach, sites, traced,
};

const THREADS: usize = 8;
/// Of each thread.
const READS: u64 = if cfg!(debug_assertions) { 20_000 } else { 100_000 };
const SITES: usize = 2;

/// Who the threads are.
static THREAD: [AtomicUsize; THREADS] = [const { AtomicUsize::new(0) }; THREADS];

/// The reads at the sites, of the threads and of the handler.
static READ: [AtomicU64; SITES] = [const { AtomicU64::new(0) }; SITES];

fn read(site: usize) {
    let _ = if site == 0 { traced!("storm/0", time()) } else { traced!("storm/1", time()) };
    READ[site].fetch_add(1, Ordering::Relaxed);
}

fn total() -> u64 {
    READ.iter().map(|reads| reads.load(Ordering::Relaxed)).sum()
}

extern "C" fn handler(_: libc::c_int) {
    read(1);
}

/// Counts the events of each site: a number that is told by the event itself.
struct Apart([AtomicU64; SITES]);

impl Trace for Apart {
    fn event(&self, event: &Event) {
        let at = usize::from(event.site().name() == "storm/1");
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }
}

static STAYS: Apart = Apart([const { AtomicU64::new(0) }; SITES]);
static STAYING: Tracer = Tracer::new(&STAYS);
static COUNTERS: [Counter; 4] = [const { Counter::new() }; 4];
static INTERVAL: Interval = Interval::new();
static SLOW: Slow = Slow::new();
static RING: Ring<8> = Ring::new();
static COMING: [Tracer; 7] = [
    Tracer::new(&COUNTERS[0]),
    Tracer::new(&COUNTERS[1]),
    Tracer::new(&COUNTERS[2]),
    Tracer::new(&COUNTERS[3]),
    Tracer::new(&INTERVAL),
    Tracer::new(&SLOW),
    Tracer::new(&RING),
];
static LINKS: [Link; 2 * (1 + COMING.len())] = Link::array();

/// What the tracers that come and go were told.
fn told() -> [u64; 7] {
    let counted = |at: usize| COUNTERS[at].calls();
    let ring = RING.events().last().map_or(0, |last| last.number + 1);
    [counted(0), counted(1), counted(2), counted(3), INTERVAL.cost().count(), SLOW.reads(), ring]
}

fn handle_signals() {
    // SAFETY: all zeros are an action without flags.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler reads a clock and adds to atomics, which a handler may.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, null_mut()) }, 0);
}

/// Interrupts one of the threads, which is there until all have read.
fn interrupt(thread: usize) {
    let thread = THREAD[thread].load(Ordering::Relaxed) as libc::pthread_t;
    // SAFETY: it has said who it is, and has not ended.
    assert_eq!(unsafe { libc::pthread_kill(thread, libc::SIGUSR1) }, 0);
}

#[test]
fn nothing_is_lost_or_doubled() {
    assert_eq!(sites().len(), SITES);
    handle_signals();
    attach(&STAYING, Select::All, &LINKS).unwrap();
    let (start, reading) = (Barrier::new(THREADS + 2), AtomicUsize::new(THREADS));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for (number, thread) in THREAD.iter().enumerate() {
            let (start, reading, done) = (&start, &reading, &done);
            scope.spawn(move || {
                // SAFETY: it has no precondition.
                thread.store(unsafe { libc::pthread_self() } as usize, Ordering::Relaxed);
                start.wait();
                for turn in 0..READS as usize {
                    read((number + turn) % SITES);
                    if turn % 64 == 0 {
                        interrupt((number + turn / 64) % THREADS);
                    }
                }
                reading.fetch_sub(1, Ordering::Release);
                // It is there to be interrupted until nobody interrupts any more.
                while !done.load(Ordering::Acquire) {
                    thread::yield_now();
                }
            });
        }
        let changing: Vec<_> = (0..2)
            .map(|number| {
                let (start, reading) = (&start, &reading);
                scope.spawn(move || {
                    start.wait();
                    let mut turn = number;
                    while reading.load(Ordering::Acquire) > 0 {
                        let tracer = &COMING[turn % COMING.len()];
                        attach(tracer, Select::All, &LINKS).unwrap();
                        // Those of the other thread too: any state of the chain may be met.
                        detach(&COMING[(turn * 5 + 1) % COMING.len()], Select::Name("storm/1"));
                        if turn % 3 != 0 {
                            detach(tracer, Select::All);
                        }
                        turn += 1;
                    }
                })
            })
            .collect();
        for thread in changing {
            thread.join().unwrap();
        }
        done.store(true, Ordering::Release);
    });

    let read_by_threads = THREADS as u64 * READS;
    println!("{} signals handled", total() - read_by_threads);
    assert!(total() > read_by_threads, "no signal was handled");
    for (told, read) in STAYS.0.iter().zip(&READ) {
        assert_eq!(told.load(Ordering::Relaxed), read.load(Ordering::Relaxed), "of {total}", total = total());
    }
    assert!(told().iter().all(|told| *told <= total()));

    // All of them at both sites, and nobody else about.
    for tracer in &COMING {
        attach(tracer, Select::All, &LINKS).unwrap();
    }
    let before = told();
    (0..1000).for_each(|turn| read(turn % SITES));
    assert_eq!(told(), before.map(|told| told + 1000));
    assert!(RING.events().map(|event| event.site.name()).is_sorted_by(|one, other| one != other));

    // And none of them.
    for tracer in &COMING {
        assert_eq!(detach(tracer, Select::All), SITES);
    }
    let before = told();
    (0..1000).for_each(|turn| read(turn % SITES));
    assert_eq!(told(), before);
    assert_eq!(detach(&STAYING, Select::All), SITES);
    assert!(sites().iter().all(|site| !site.is_traced()));
}
