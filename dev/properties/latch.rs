//! The counter clock and its latch under loom, which tries each order of the threads up to a number
//! of preemptions, and each value that the memory model lets a load return.
//!
//! Their source is compiled again. Its atomics come from `core`, which is this crate here.

extern crate self as core;

#[allow(
    dead_code,
    unreachable_pub,
    reason = "the crate exports it and uses the rest"
)]
#[path = "../../crates/vdso-time-counter/src/engine/mod.rs"]
mod engine;

mod interleaved;

pub(crate) use std::{error, fmt, time};

use std::cell::Cell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use engine::latch::{Latch as AnyLatch, Version, Word};
use loom::sync::atomic as modelled;
use loom::sync::atomic::Ordering;

mod sync {
    pub(crate) mod atomic {
        pub(crate) use crate::{AtomicU64, AtomicUsize};
        pub(crate) use loom::sync::atomic::{Ordering, fence};
        pub(crate) use std::sync::atomic::AtomicBool; // never written in a model
    }
}

type Latch = AnyLatch<2>;

thread_local! {
    /// The stores after which a writer ends, as one does in the child of a fork by another thread.
    static STORES: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The address of the clock that is modelled, if one is.
    static CLOCK: Cell<usize> = const { Cell::new(0) };
}

/// An atomic that a constant can create, as loom's cannot. The first use creates loom's.
pub(crate) struct AtomicU64(u64, OnceLock<modelled::AtomicU64>);

impl AtomicU64 {
    const fn new(value: u64) -> Self {
        Self(value, OnceLock::new())
    }
}

impl Deref for AtomicU64 {
    type Target = modelled::AtomicU64;

    fn deref(&self) -> &Self::Target {
        self.1.get_or_init(|| modelled::AtomicU64::new(self.0))
    }
}

/// Where a clock has its sequence number (after the high-water mark and a count), and where its two
/// copies of the words.
const SEQUENCE: usize = size_of::<AtomicU64>() + size_of::<AtomicUsize>();
const COPIES: [usize; 2] = [
    SEQUENCE + size_of::<AtomicUsize>(),
    SEQUENCE + (1 + 128 / size_of::<usize>()) * size_of::<AtomicUsize>(),
];

/// Such an atomic of `usize`. In a clock only the sequence number is loom's. The words of a copy
/// are written in one step: the first one stands for all of them, and a read of it sees the last
/// write.
pub(crate) struct AtomicUsize(
    std::sync::atomic::AtomicUsize,
    OnceLock<modelled::AtomicUsize>,
);

impl AtomicUsize {
    const fn new(value: usize) -> Self {
        Self(std::sync::atomic::AtomicUsize::new(value), OnceLock::new())
    }

    fn modelled(&self) -> &modelled::AtomicUsize {
        self.1
            .get_or_init(|| modelled::AtomicUsize::new(self.0.load(Ordering::Relaxed)))
    }

    /// Returns its place in the clock, or `None` for the sequence number.
    fn unmodelled(&self) -> Option<usize> {
        let place = std::ptr::from_ref(self).addr().wrapping_sub(CLOCK.get());
        (CLOCK.get() != 0 && place != SEQUENCE).then_some(place)
    }

    fn load(&self, order: Ordering) -> usize {
        let Some(place) = self.unmodelled() else {
            return self.modelled().load(order);
        };
        if COPIES.contains(&place) {
            self.modelled().fetch_add(0, order);
        }
        self.0.load(order)
    }

    fn store(&self, value: usize, order: Ordering) {
        let left = STORES.get();
        assert!(left > 0, "the writer ends here");
        STORES.set(left - 1);
        let place = self.unmodelled();
        if place.is_none_or(|place| COPIES.contains(&place)) {
            self.modelled().store(value, order);
        }
        if place.is_some() {
            self.0.store(value, order);
        }
    }

    /// Exchanges loom's value: only the sequence number of a latch or a clock is exchanged.
    fn compare_exchange(
        &self,
        old: usize,
        new: usize,
        yes: Ordering,
        no: Ordering,
    ) -> Result<usize, usize> {
        self.modelled().compare_exchange(old, new, yes, no)
    }
}

/// Runs a model with every order of up to so many preemptions.
fn check(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(move || {
        CLOCK.set(0);
        run();
    });
}

/// Runs a model of a latch in the same way.
fn model(preemptions: usize, run: impl Fn(Arc<Latch>) + Sync + Send + 'static) {
    check(preemptions, move || {
        let latch = Arc::new(Latch::new());
        // These create the atomics before there are threads.
        let _ = (earlier(&latch), read(&latch));
        run(latch);
    });
}

/// Returns the last word, and the one before it, if no writer replaces that.
fn earlier(latch: &Latch) -> Option<(u64, u64)> {
    let whole = |words: &[Word; 2]| {
        let words = words.each_ref().map(Word::load);
        (words[0], words[0] == words[1])
    };
    let words = latch.read(|version: Version, words| {
        let words = words.map(whole);
        (!version.has_writer()).then_some(words)
    });
    let [(now, is_whole), (before, was_whole)] = words?;
    assert!(is_whole && was_whole, "{words:?} are torn");
    Some((now, before))
}

/// Increments both words, if no other thread does. Returns whether it did.
fn update(latch: &Latch) -> bool {
    let (version, words) = latch.snapshot();
    latch.update(version, &[words[0] + 1; 2])
}

/// Reads as a fast read does.
fn read(latch: &Latch) -> Option<u64> {
    let words = latch.read(|_, [words, _]| Some(words.each_ref().map(Word::load)))?;
    assert!(words == [words[0]; 2], "{words:?} are torn");
    Some(words[0])
}

#[test]
fn a_read_is_never_torn_and_never_goes_back() {
    model(3, |latch| {
        let reads = Arc::clone(&latch);
        let reader = loom::thread::spawn(move || {
            let first = read(&reads);
            let second = read(&reads);
            assert!(
                second.is_none() || second >= first,
                "{second:?} after {first:?}"
            );
        });
        assert!(update(&latch) && update(&latch));
        reader.join().unwrap();
        assert_eq!(read(&latch), Some(2));
    });
}

#[test]
fn a_snapshot_has_the_words_of_one_update_and_of_the_one_before() {
    model(2, |latch| {
        let snapshots = Arc::clone(&latch);
        let reader = loom::thread::spawn(move || {
            let (_, [now, same]) = snapshots.snapshot();
            assert_eq!(now, same);
            let words = earlier(&snapshots);
            assert!(
                words.is_none_or(|(now, before)| before == now.saturating_sub(1)),
                "{words:?}"
            );
        });
        assert!(update(&latch) && update(&latch));
        reader.join().unwrap();
    });
}

#[test]
fn one_of_two_updates_from_the_same_snapshot_succeeds() {
    model(3, |latch| {
        let other = Arc::clone(&latch);
        let (version, _) = latch.snapshot();
        let thread = loom::thread::spawn(move || other.update(version, &[1; 2]));
        let this = latch.update(version, &[1; 2]);
        let that = thread.join().unwrap();
        assert!(this != that, "{this}, {that}");
        assert_eq!(read(&latch), Some(1));
    });
}

/// Ends a writer after each of its stores: four for two words on a 32-bit machine, and one for the
/// sequence number.
#[test]
fn a_writer_that_ends_at_any_store_leaves_whole_words_and_no_update_waits() {
    for stores in 0..if cfg!(target_pointer_width = "64") {
        3
    } else {
        5
    } {
        model(0, move |latch| {
            assert!(update(&latch));
            STORES.set(stores);
            let ended = catch_unwind(AssertUnwindSafe(|| update(&latch)));
            STORES.set(usize::MAX);
            let (version, words) = latch.snapshot();
            assert!(ended.is_err() && version.has_writer());
            assert_eq!(
                (words, read(&latch), earlier(&latch)),
                ([1; 2], Some(1), None)
            );
            assert!(!update(&latch));
        });
    }
}
