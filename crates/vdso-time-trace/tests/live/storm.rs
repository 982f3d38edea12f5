//! Tracers come and go while eight threads read and a signal handler reads between their
//! instructions. A tracer that stays receives each read once. A thread that attaches a tracer of its
//! own receives its reads by it, from the first after `attach` to the last before `detach`.

#![allow(unsafe_code, reason = "signals are libc's")]

use std::cell::Cell;
use std::mem;
use std::os::unix::thread::JoinHandleExt as _;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use vdso_time::time;
use vdso_time_trace::{Link, Ring, Select, Site, Trace, Tracer, attach, detach, traced};

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
    fn event(&self, site: &'static Site, _: Option<i64>) {
        self.0[usize::from(site.name() == "storm/1")].fetch_add(1, Ordering::Relaxed);
    }
}

thread_local! {
    /// The events that the tracers of `OWN` received in this thread.
    static RECEIVED: [Cell<usize>; 2] = const { [const { Cell::new(0) }; 2] };
}

struct Own(usize);

impl Trace for Own {
    fn event(&self, _: &'static Site, _: Option<i64>) {
        RECEIVED.with(|received| received[self.0].set(received[self.0].get() + 1));
    }
}

static BY_SITE: BySite = BySite([const { AtomicU64::new(0) }; 2]);
static STAYS: Tracer = Tracer::new(&BY_SITE);
static RING: Ring<8> = Ring::new();
static LAST: Tracer = Tracer::new(&RING);
static OWN: [Tracer; 2] = [Tracer::new(&Own(0)), Tracer::new(&Own(1))];
static LINKS: [Link; 8] = Link::array();

/// Attaches and detaches until the storm is over, and then on, so that both threads run at once.
fn come_and_go(number: usize) {
    let of_two_reads = || {
        let before = RECEIVED.with(|received| received[number].get());
        read(0);
        read(1);
        RECEIVED.with(|received| received[number].get()) - before
    };
    let mut turns = 0;
    while turns < 10_000 || !OVER.load(Ordering::Acquire) {
        turns += 1;
        assert_eq!(attach(&OWN[number], SITES, &LINKS), Ok(2));
        assert_eq!(of_two_reads(), 2);
        attach(&LAST, SITES, &LINKS).unwrap();
        assert_eq!(detach(&OWN[number], Select::Name("storm/1")), 1);
        assert_eq!(of_two_reads(), 1);
        // Also what the other thread has just attached.
        detach(&LAST, SITES);
        assert_eq!(detach(&OWN[number], SITES), 1);
        assert_eq!(of_two_reads(), 0);
    }
}

#[test]
fn no_event_is_lost_or_doubled() {
    // SAFETY: the default action of the signal ends a test that hangs.
    unsafe { libc::alarm(110) };
    // SAFETY: zeros are a valid sigaction.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler makes only calls that are async-signal-safe.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, null_mut()) }, 0);

    attach(&STAYS, SITES, &LINKS).unwrap();
    let changing = [0, 1].map(|number| thread::spawn(move || come_and_go(number)));
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
    // Every slot of the ring still works.
    attach(&LAST, SITES, &LINKS).unwrap();
    (0..8).for_each(|turn| read(turn % 2));
    assert_eq!(RING.events().count(), 8);
    assert!(RING.events().map(|event| event.site.name()).is_sorted_by(|one, other| one != other));
    assert_eq!([&LAST, &STAYS].map(|tracer| detach(tracer, SITES)), [2, 2]);
}
