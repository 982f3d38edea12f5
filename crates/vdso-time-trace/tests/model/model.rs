//! `src/chain.rs` and `src/seqlock.rs` with loom's atomics: every interleaving of a few reads with
//! `attach` and `detach`, and every value that the memory model lets a load see.
//!
//! A tracer's content is in a loom cell, which fails on a data race. So an ordering that publishes
//! a tracer without its content fails.

#![allow(unsafe_code, reason = "loom's cell hands out pointers")]
#![allow(dead_code, unreachable_pub, reason = "the crate uses more of these modules than the model")]

use std::ptr::null_mut;

use atomic::{AtomicBool, AtomicPtr, AtomicU64};
use chain::{AtomicRef, Chain, Link};
use loom::cell::UnsafeCell;
use loom::thread;
use seqlock::{Fields, Slot};
use tracer::Tracer;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
}
#[path = "../../src/chain.rs"]
mod chain;
#[path = "../../src/seqlock.rs"]
mod seqlock;

mod tracer {
    use super::UnsafeCell;

    pub enum Tracer {
        Walker,
        /// The number is written by the thread that attaches the tracer.
        Numbered(UnsafeCell<Option<usize>>),
    }

    // SAFETY: loom checks every access to the cell.
    unsafe impl Sync for Tracer {}

    impl Tracer {
        pub(crate) fn walker() -> &'static Self {
            static WALKER: Tracer = Tracer::Walker;
            &WALKER
        }
    }
}

const TRACERS: usize = 4;

/// How often each tracer was called.
type Calls = [usize; TRACERS];

/// A site, and its tracers.
struct World {
    chain: Chain,
    tracers: [&'static Tracer; TRACERS],
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn null<T: Sync>() -> AtomicRef<T> {
    AtomicRef(AtomicPtr::new(null_mut()))
}

impl World {
    /// A site with the first `attached` tracers.
    fn new(attached: usize) -> &'static Self {
        let tracers = [(); TRACERS].map(|()| leak(Tracer::Numbered(UnsafeCell::new(None))));
        let chain = Chain { ops: null(), links: null() };
        let world = leak(Self { chain, tracers });
        (0..attached).for_each(|number| world.attach(number));
        world
    }

    fn attach(&self, number: usize) {
        if let Tracer::Numbered(cell) = self.tracers[number] {
            // SAFETY: loom checks that no other thread knows the tracer before it is attached.
            cell.with_mut(|place| unsafe { *place = Some(number) });
        }
        let link = Link { taken: AtomicBool::new(false), tracer: null(), next: null() };
        assert!(self.chain.attach(self.tracers[number], [leak(link)].into_iter()));
    }

    fn detach(&self, number: usize) {
        assert!(self.chain.detach(self.tracers[number]));
    }

    /// Reads as `Site::trace` does.
    fn read(&self) -> Calls {
        let mut calls = [0; TRACERS];
        let mut call = |tracer: &Tracer| {
            let Tracer::Numbered(cell) = tracer else { panic!("the walker is in a chain") };
            // SAFETY: loom checks that the number was written before the tracer was attached.
            let number = cell.with(|place| unsafe { *place });
            calls[number.expect("a tracer without its content")] += 1;
        };
        match self.chain.ops().filter(|_| self.chain.is_traced()) {
            None => {}
            Some(Tracer::Walker) => self.chain.tracers().for_each(call),
            Some(tracer) => call(tracer),
        }
        assert!(calls.iter().all(|calls| *calls <= 1), "a tracer was called twice: {calls:?}");
        calls
    }
}

/// What is attached, what another thread changes, what two reads see meanwhile, what a read sees
/// after. `attach` and `detach` hold a lock, so one thread makes all changes.
type Case = (&'static str, usize, fn(&World), fn(Calls, Calls) -> bool, Calls);

fn replace(world: &World, [detached, attached]: [usize; 2]) {
    world.detach(detached);
    world.attach(attached);
}

fn come_and_go(world: &World) {
    world.attach(1);
    world.detach(1);
}

const CASES: [Case; 6] = [
    ("content is published", 0, |world| world.attach(0), |a, b| a[0] <= b[0], [1, 0, 0, 0]),
    ("after detach there are no calls", 1, |world| world.detach(0), |a, b| a[0] >= b[0], [0; 4]),
    ("another comes and goes", 1, come_and_go, |a, b| a[0] == 1 && b[0] == 1, [1, 0, 0, 0]),
    ("a link is reused", 1, |world| replace(world, [0, 1]), |_, _| true, [0, 1, 0, 0]),
    // A walk that has begun finds a new tracer by its link alone, a new link or a reused one.
    ("a walk", 2, |world| world.attach(3), |a, b| [a[0], b[0], a[1], b[1]] == [1; 4], [1, 1, 0, 1]),
    (
        "a walk, reused",
        3,
        |world| replace(world, [1, 3]),
        |a, b| [a[0], b[0], a[2], b[2]] == [1; 4],
        [1, 0, 1, 1],
    ),
];

#[test]
fn reads_call_each_attached_tracer_once_while_others_change() {
    for (name, attached, change, expected, after) in CASES {
        println!("{name}");
        loom::model(move || {
            let world = World::new(attached);
            let thread = thread::spawn(move || change(world));
            let (first, second) = (world.read(), world.read());
            assert!(expected(first, second), "{first:?} {second:?}");
            thread.join().unwrap();
            assert_eq!(world.read(), after);
            assert_eq!(world.chain.is_traced(), after != [0; TRACERS]);
        });
    }
}

fn slot() -> &'static Slot {
    leak(Slot { sequence: AtomicU64::new(0), fields: [(); 3].map(|()| AtomicU64::new(9)) })
}

/// The fields of a ticket's event.
const fn fields(ticket: u64) -> Fields {
    [ticket; 3]
}

fn is_complete_or_absent(slot: &Slot, ticket: u64) -> bool {
    slot.read(ticket).is_none_or(|found| found == fields(ticket))
}

/// Which of the two is the new thread decides what orders loom tries.
#[test]
fn an_event_is_read_complete_or_not_at_all() {
    for (is_overwritten, ticket) in [(false, 1), (true, 0), (true, 1)] {
        for new_thread_reads in [false, true] {
            loom::model(move || {
                let slot = slot();
                assert!(!is_overwritten || slot.write(0, fields(0)));
                let work = move |reads| {
                    assert!(if reads {
                        is_complete_or_absent(slot, ticket)
                    } else {
                        slot.write(1, fields(1))
                    });
                };
                let thread = thread::spawn(move || work(new_thread_reads));
                work(!new_thread_reads);
                thread.join().unwrap();
                assert_eq!([slot.read(0), slot.read(1)], [None, Some(fields(1))]);
            });
        }
    }
}

/// With a reader loom tries other orders than without.
#[test]
fn of_two_writers_one_may_lose_its_event() {
    for reads in [0..0, 0..2] {
        loom::model(move || {
            let slot = slot();
            let threads = [0, 1].map(|ticket| thread::spawn(move || slot.write(ticket, fields(ticket))));
            assert!(reads.clone().all(|ticket| is_complete_or_absent(slot, ticket)));
            let [earlier, later] = threads.map(|thread| thread.join().unwrap());
            assert!(earlier || later);
            let expected = if later { [None, Some(fields(1))] } else { [Some(fields(0)), None] };
            assert_eq!([slot.read(0), slot.read(1)], expected);
        });
    }
}
