//! The latch of the counter clock under loom, which tries each order of the threads up to a number
//! of preemptions, and each value that the memory model lets a load return.
//!
//! The latch's source is compiled again. Its atomics come from `core`, which is this crate here.

extern crate self as core;

#[allow(dead_code, reason = "only the clock uses it")]
#[path = "../../src/counter/latch.rs"]
mod latch;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use latch::{Latch, Word};
use loom::sync::atomic::Ordering;

mod sync {
    pub(crate) mod atomic {
        pub(crate) use crate::AtomicUsize;
        pub(crate) use loom::sync::atomic::{Ordering, fence};
    }
}

/// loom's atomic.
type Modelled = Rc<loom::sync::atomic::AtomicUsize>;

thread_local! {
    /// The atomics of this run of a model, by address.
    static ATOMICS: RefCell<HashMap<usize, Modelled>> = RefCell::default();
    /// The stores after which a writer ends, as one does in the child of a fork by another thread.
    static STORES: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// An atomic of the real size that a constant can create, as loom's cannot. It holds the first
/// value.
pub(crate) struct AtomicUsize(usize);

impl AtomicUsize {
    const fn new(value: usize) -> Self {
        Self(value)
    }

    fn modelled(&self) -> Modelled {
        let address = std::ptr::from_ref(self).addr();
        ATOMICS.with_borrow_mut(|atomics| {
            Rc::clone(atomics.entry(address).or_insert_with(|| Modelled::new(self.0.into())))
        })
    }

    fn load(&self, order: Ordering) -> usize {
        self.modelled().load(order)
    }

    fn store(&self, value: usize, order: Ordering) {
        let left = STORES.get();
        assert!(left > 0, "the writer ends here");
        STORES.set(left - 1);
        self.modelled().store(value, order);
    }

    fn compare_exchange(&self, old: usize, new: usize, yes: Ordering, no: Ordering) -> Result<usize, usize> {
        self.modelled().compare_exchange(old, new, yes, no)
    }
}

/// Runs a model with every order of up to so many preemptions.
fn model(preemptions: usize, run: impl Fn(Arc<Latch<2, ()>>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        ATOMICS.with_borrow_mut(HashMap::clear);
        let latch = Arc::new(Latch::new(()));
        latch.snapshot(); // creates the atomics before there are threads
        run(latch);
    });
}

/// Increments both words, if nobody else does. Returns whether it did.
fn update(latch: &Latch<2, ()>) -> bool {
    let snapshot = latch.snapshot();
    latch.update(&snapshot, &[snapshot.words[0] + 1; 2])
}

/// What a fast read does.
fn read(latch: &Latch<2, ()>) -> Option<u64> {
    let (words, is_whole) = latch.read(|words| words.each_ref().map(Word::load));
    assert!(!is_whole || words[0] == words[1], "{words:?} are torn");
    is_whole.then_some(words[0])
}

#[test]
fn a_read_is_never_torn_and_never_goes_back() {
    model(3, |latch| {
        let reads = Arc::clone(&latch);
        let reader = loom::thread::spawn(move || {
            let (first, second) = (read(&reads), read(&reads));
            assert!(second.is_none() || second >= first, "{second:?} after {first:?}");
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
            let snapshot = snapshots.snapshot();
            let [now, same] = snapshot.words;
            assert_eq!(now, same);
            let previous = snapshot.previous.unwrap_or([now.saturating_sub(1); 2]);
            assert_eq!(previous, [now.saturating_sub(1); 2]);
        });
        assert!(update(&latch) && update(&latch));
        reader.join().unwrap();
    });
}

#[test]
fn one_of_two_updates_from_the_same_snapshot_succeeds() {
    model(3, |latch| {
        let other = Arc::clone(&latch);
        let snapshot = latch.snapshot();
        let thread = loom::thread::spawn(move || other.update(&snapshot, &[1; 2]));
        let (this, that) = (latch.update(&snapshot, &[1; 2]), thread.join().unwrap());
        assert!(this != that, "{this}, {that}");
        assert_eq!(read(&latch), Some(1));
    });
}

/// Two words on a 32-bit machine are four stores, and the sequence number is one.
#[test]
fn a_writer_that_ends_at_any_store_leaves_whole_words_and_no_update_waits() {
    for stores in 0..if cfg!(target_pointer_width = "64") { 3 } else { 5 } {
        model(0, move |latch| {
            assert!(update(&latch));
            STORES.set(stores);
            let ended = catch_unwind(AssertUnwindSafe(|| update(&latch)));
            STORES.set(usize::MAX);
            assert!(ended.is_err() && latch.snapshot().has_writer());
            assert_eq!(read(&latch), Some(1));
            assert!(!update(&latch));
        });
    }
}
