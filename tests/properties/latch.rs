//! Every order of up to three preemptions in which threads may go through the counter clock's latch, with every value that the
//! memory model lets a load have: loom tries them all. It is the crate's own file, whose atomics are loom's here.

// The file takes its atomics from `core`, which is this crate then.
extern crate self as core;

#[allow(dead_code, reason = "what the clock needs more")]
#[path = "../../src/counter/latch.rs"]
mod latch;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use latch::{Latch, Word};

mod sync {
    pub(crate) mod atomic {
        pub(crate) use crate::AtomicUsize;
        pub(crate) use loom::sync::atomic::{Ordering, fence};
    }
}

type Place = Rc<loom::sync::atomic::AtomicUsize>;

thread_local! {
    /// What is at each address, in this run of a model: loom's own atomics are not made in constants, and have another size.
    static PLACES: RefCell<HashMap<usize, Place>> = RefCell::default();
}

/// An atomic of the size that it should have, with what it is born with.
pub(crate) struct AtomicUsize(usize);

impl AtomicUsize {
    const fn new(value: usize) -> Self {
        Self(value)
    }

    fn place(&self) -> Place {
        let address = std::ptr::from_ref(self).addr();
        PLACES.with_borrow_mut(|places| {
            Rc::clone(places.entry(address).or_insert_with(|| Place::new(self.0.into())))
        })
    }

    fn load(&self, ordering: sync::atomic::Ordering) -> usize {
        self.place().load(ordering)
    }

    fn store(&self, value: usize, ordering: sync::atomic::Ordering) {
        self.place().store(value, ordering);
    }

    fn compare_exchange(
        &self,
        old: usize,
        new: usize,
        success: sync::atomic::Ordering,
        failure: sync::atomic::Ordering,
    ) -> Result<usize, usize> {
        self.place().compare_exchange(old, new, success, failure)
    }
}

/// Tries a model with every order of up to so many preemptions.
fn model(preemptions: usize, run: impl Fn(Arc<Latch<2>>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        PLACES.with_borrow_mut(HashMap::clear);
        let latch = Arc::new(Latch::new());
        latch.snapshot(); // makes all the places before there are threads
        run(latch);
    });
}

/// Renews from what there is, if nobody else does.
fn renew(latch: &Latch<2>) -> bool {
    let seen = latch.snapshot();
    let next = seen.words[0] + 1;
    latch.update(&seen, &[next; 2])
}

/// What a read takes.
fn peek(latch: &Latch<2>) -> Option<u64> {
    let (words, is_whole) = latch.read(|words| words.each_ref().map(Word::load));
    assert!(!is_whole || words[0] == words[1], "{words:?} are torn");
    is_whole.then_some(words[0])
}

#[test]
fn a_read_is_never_torn_and_never_goes_back() {
    model(3, |latch| {
        let reads = Arc::clone(&latch);
        let reader = loom::thread::spawn(move || {
            let first = peek(&reads);
            let second = peek(&reads);
            assert!(second.is_none() || second >= first, "{second:?} after {first:?}");
        });
        assert!(renew(&latch));
        assert!(renew(&latch));
        reader.join().unwrap();
        assert_eq!(peek(&latch), Some(2));
    });
}

#[test]
fn all_the_words_are_of_one_renewal_and_the_one_before() {
    model(2, |latch| {
        let loads = Arc::clone(&latch);
        let loader = loom::thread::spawn(move || {
            let seen = loads.snapshot();
            let [now, same] = seen.words;
            assert_eq!(now, same);
            assert!(
                seen.previous.is_none_or(|before| before == [now.saturating_sub(1); 2]),
                "{:?}",
                seen.previous
            );
        });
        assert!(renew(&latch));
        assert!(renew(&latch));
        loader.join().unwrap();
    });
}

#[test]
fn of_two_who_renew_from_the_same_one_does() {
    model(3, |latch| {
        let other = Arc::clone(&latch);
        let seen = latch.snapshot();
        let both = loom::thread::spawn(move || other.update(&seen, &[1; 2]));
        let this = latch.update(&seen, &[1; 2]);
        let that = both.join().unwrap();
        assert!(this != that, "{this}, {that}");
        assert_eq!(peek(&latch), Some(1));
    });
}
