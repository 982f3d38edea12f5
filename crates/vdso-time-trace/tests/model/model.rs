//! `src/chain.rs` and `src/slot.rs` with loom's atomics: every interleaving of a few calls with those who attach and detach, and every
//! value that the memory model lets a load see.
//!
//! A tracer is told what it needs by plain memory (loom's cell, which fails on a data race): so an order that publishes less than a whole
//! tracer fails.

#![allow(unsafe_code, reason = "loom's cell hands out pointers")]
#![allow(dead_code, reason = "the crate uses more of the chain than the model")]

/// What they use.
mod atomic {
    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

#[path = "../../src/chain.rs"]
mod chain;
#[path = "../../src/slot.rs"]
mod slot;

use std::ptr::{self, null_mut};

use atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use chain::{Anchor, Link, Ops, Place};
use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::thread;
use slot::{Fields, Slot};

const TRACERS: usize = 4;

/// What a site points to.
struct Tracer {
    /// `None` is the walker.
    number: UnsafeCell<Option<usize>>,
}

// SAFETY: its cell is written before others know it, or loom would tell.
unsafe impl Sync for Tracer {}

/// A site, what is attached there, and the lock of those who attach.
struct World {
    anchor: Anchor<Tracer>,
    tracers: [&'static Tracer; TRACERS],
    walker: &'static Tracer,
    turn: Mutex<()>,
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn tracer(number: Option<usize>) -> &'static Tracer {
    leak(Tracer { number: UnsafeCell::new(number) })
}

fn link() -> &'static Link<Tracer> {
    leak(Link {
        taken: AtomicBool::new(false),
        tracer: Place(AtomicPtr::new(null_mut())),
        next: Place(AtomicPtr::new(null_mut())),
    })
}

impl World {
    fn new() -> &'static Self {
        leak(Self {
            anchor: Anchor {
                ops: Place(AtomicPtr::new(null_mut())),
                links: Place(AtomicPtr::new(null_mut())),
            },
            // Each is given its number by the thread that attaches it.
            tracers: [(); TRACERS].map(|()| tracer(None)),
            walker: tracer(None),
            turn: Mutex::new(()),
        })
    }

    fn attach(&self, number: usize) {
        // SAFETY: nobody knows the tracer before it is attached, or loom would tell.
        self.tracers[number].number.with_mut(|place| unsafe { *place = Some(number) });
        let _turn = self.turn.lock().unwrap();
        assert!(self.anchor.attach(self.tracers[number], || Some(link()), |_| self.walker));
    }

    fn detach(&self, number: usize) {
        let _turn = self.turn.lock().unwrap();
        assert!(self.anchor.detach(self.tracers[number], |_| self.walker));
    }

    /// A call, as `Site::trace` makes it; gives how often each tracer was told.
    fn call(&self) -> [usize; TRACERS] {
        let mut told = [0; TRACERS];
        let mut tell = |tracer: &Tracer| {
            // SAFETY: it was written before it was attached, or loom would tell.
            match tracer.number.with(|place| unsafe { *place }) {
                Some(number) => told[number] += 1,
                None => panic!("a tracer that is not whole"),
            }
        };
        match self.anchor.ops().map(Ops::get) {
            None => {}
            Some(ops) if ptr::eq(ops, self.walker) => self.anchor.tracers().for_each(tell),
            Some(tracer) => tell(tracer),
        }
        told
    }
}

/// Whoever attaches is seen whole or not at all, by one caller that calls twice.
#[test]
fn a_tracer_is_published_whole() {
    loom::model(|| {
        let world = World::new();
        let attaching = thread::spawn(|| world.attach(0));
        let first = world.call();
        let second = world.call();
        assert!(first[0] <= second[0] && second[0] <= 1, "{first:?} {second:?}");
        attaching.join().unwrap();
        assert_eq!(world.call(), [1, 0, 0, 0]);
    });
}

/// A second one, over the walker and its links.
#[test]
fn a_tracer_that_stays_is_told_once_whatever_comes_and_goes() {
    loom::model(|| {
        let world = World::new();
        world.attach(0);
        let changing = thread::spawn(|| {
            world.attach(1);
            world.detach(1);
        });
        for _ in 0..2 {
            let [stays, comes, ..] = world.call();
            assert_eq!(stays, 1);
            assert!(comes <= 1);
        }
        changing.join().unwrap();
        assert_eq!(world.call(), [1, 0, 0, 0]);
    });
}

/// One goes while another comes: its link is used again, and no call tells either twice.
#[test]
fn a_link_is_used_again() {
    loom::model(|| {
        let world = World::new();
        world.attach(0);
        let changing = thread::spawn(|| {
            world.detach(0);
            world.attach(1);
        });
        let told = world.call();
        assert!(told.iter().all(|times| *times <= 1), "{told:?}");
        changing.join().unwrap();
        assert_eq!(world.call(), [0, 1, 0, 0]);
    });
}

/// A call that has found the walker finds a tracer by its link alone, a new one or one that is used again.
#[test]
fn a_walk_finds_what_came_after_it_began() {
    for goes in [None, Some(2)] {
        loom::model(move || {
            let world = World::new();
            (0..2).for_each(|number| world.attach(number));
            if let Some(number) = goes {
                world.attach(number);
                world.detach(number);
            }
            let attaching = thread::spawn(|| world.attach(3));
            let [first, second, third, fourth] = world.call();
            assert_eq!([first, second, third], [1, 1, 0]);
            assert!(fourth <= 1);
            attaching.join().unwrap();
            assert_eq!(world.call(), [1, 1, 0, 1]);
        });
    }
}

/// The last one goes, and nobody is told any more.
#[test]
fn a_tracer_goes() {
    loom::model(|| {
        let world = World::new();
        world.attach(0);
        let detaching = thread::spawn(|| world.detach(0));
        let (first, second) = (world.call(), world.call());
        assert!(second[0] <= first[0] && first[0] <= 1, "{first:?} {second:?}");
        detaching.join().unwrap();
        assert!(world.anchor.ops().is_none());
        assert_eq!(world.call(), [0; TRACERS]);
    });
}

/// Two attach at once, and one of them detaches again: in the end exactly the other is told.
#[test]
fn those_who_attach_at_once_take_turns() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = World::new();
        let one = thread::spawn(|| world.attach(0));
        let other = thread::spawn(|| {
            world.attach(1);
            world.detach(1);
        });
        let told = world.call();
        assert!(told.iter().all(|times| *times <= 1), "{told:?}");
        one.join().unwrap();
        other.join().unwrap();
        assert_eq!(world.call(), [1, 0, 0, 0]);
    });
}

fn slot() -> &'static Slot {
    leak(Slot {
        sequence: AtomicU64::new(0),
        site: AtomicUsize::new(9),
        cpu: AtomicU32::new(9),
        nanos: AtomicI64::new(9),
    })
}

/// What the event of a ticket is made of.
const fn fields(ticket: u64) -> Fields {
    Fields { site: ticket as usize, cpu: ticket as u32, nanos: ticket as i64 }
}

/// One reads what another writes, or overwrites. Which of them is the new thread decides what orders loom tries.
#[test]
fn an_event_is_read_whole_or_not_at_all() {
    for (is_there, asked) in [(false, 1), (true, 0), (true, 1)] {
        for new_thread_reads in [false, true] {
            loom::model(move || {
                let slot = slot();
                assert!(!is_there || slot.write(0, fields(0)));
                let one = move |reads| {
                    if reads {
                        assert!(slot.read(asked).is_none_or(|found| found == fields(asked)));
                    } else {
                        assert!(slot.write(1, fields(1)));
                    }
                };
                let other = thread::spawn(move || one(new_thread_reads));
                one(!new_thread_reads);
                other.join().unwrap();
                assert_eq!([slot.read(0), slot.read(1)], [None, Some(fields(1))]);
            });
        }
    }
}

/// What is true when two have written: the later event stays if it was written, and it is whole.
fn one_may_have_lost(slot: &Slot, [earlier, later]: [bool; 2]) {
    assert!(earlier || later);
    let expected = if later { [None, Some(fields(1))] } else { [Some(fields(0)), None] };
    assert_eq!([slot.read(0), slot.read(1)], expected);
}

#[test]
fn of_two_writers_one_may_lose() {
    loom::model(|| {
        let slot = slot();
        let other = thread::spawn(move || slot.write(0, fields(0)));
        let later = slot.write(1, fields(1));
        one_may_have_lost(slot, [other.join().unwrap(), later]);
    });
}

/// The same while a third reads: that makes loom try other orders.
#[test]
fn of_two_writers_one_may_lose_and_a_reader_sees_neither_in_part() {
    loom::model(|| {
        let slot = slot();
        let writers = [0, 1].map(|ticket| thread::spawn(move || slot.write(ticket, fields(ticket))));
        for ticket in [0, 1] {
            assert!(slot.read(ticket).is_none_or(|found| found == fields(ticket)));
        }
        one_may_have_lost(slot, writers.map(|writer| writer.join().unwrap()));
    });
}
