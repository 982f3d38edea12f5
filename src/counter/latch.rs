//! [`Latch`]: words that one caller at a time updates while others read them, without waiting.
//!
//! The design is that of Linux's `seqcount_latch_t` (include/linux/seqlock.h,
//! Documentation/locking/seqlock.rst): two copies of the data, and a sequence number that selects
//! the copy to read. A writer changes only the other copy. So a reader always finds one complete
//! copy, even a signal handler that interrupts the writer.
//!
//! Linux leaves the exclusion of writers to the caller. Here the sequence number has a *writer
//! bit*. A caller computes the new words first, then sets the bit by a compare-and-swap from the
//! sequence number that it had read. It stores the words and clears the bit together with
//! advancing the sequence number. If another caller was faster, the words are dropped.
//!
//! The bit is held for a bounded number of stores, and is never taken from its holder. If a process
//! forks during these stores, the child has the bit but not the thread: it can read, not update.
//!
//! # Memory ordering
//!
//! | reader | writer |
//! |---|---|
//! | R1: load the sequence number, `Acquire` | W1: set the writer bit |
//! | R2: load the words, `Relaxed` | W2: fence, `Release` |
//! | R3: fence, `Acquire` | W3: store the words, `Relaxed` |
//! | R4: load the sequence number again, `Relaxed` | W4: store the sequence number, `Release` |
//!
//! - W4 synchronizes with R1: a reader that sees a sequence number sees the words it selects. It
//!   also synchronizes with W1, which is `Acquire`: so the stores of all writers are in order.
//! - W2 synchronizes with R3 if R2 sees a word of W3. Then R4 sees W1 or a later value. So a reader
//!   whose words come from a later update than R1 sees a changed sequence number and drops them.
//!
//! The sequence number repeats after 2^25 updates on a 32-bit machine. Only a reader that stops
//! between R1 and R4 for exactly so many updates, which take three days, could miss a change.

use core::sync::atomic::{AtomicUsize, Ordering, fence};

/// Set while a caller stores the next words.
const WRITER: usize = 1;
/// The increment of the sequence number: the size of a copy, so that a mask gives its offset.
const STEP: usize = 128;

/// Two copies of `N` words.
#[repr(C)]
pub(super) struct Latch<const N: usize, B> {
    copies: [Words<N>; 2],
    sequence: AtomicUsize,
    /// What shares a cache line with the sequence number.
    pub(super) beside: B,
}

/// Aligned so that the first words, which every read takes, are in one cache line.
#[repr(C, align(128))]
struct Words<const N: usize>([Word; N]);

/// A consistent view of the latch.
#[derive(Clone, Copy)]
pub(super) struct Snapshot<const N: usize> {
    sequence: usize,
    /// The words of the last update.
    pub(super) words: [u64; N],
    /// The words of the update before it, unless a writer is replacing them.
    pub(super) previous: Option<[u64; N]>,
}

impl<const N: usize> Snapshot<N> {
    /// Whether a caller held the writer bit.
    pub(super) fn has_writer(&self) -> bool {
        self.sequence & WRITER != 0
    }
}

impl<const N: usize, B> Latch<N, B> {
    pub(super) const fn new(beside: B) -> Self {
        let copies = [const { Words([const { Word::new() }; N]) }; 2];
        Self { copies, sequence: AtomicUsize::new(0), beside }
    }

    /// Applies `read` to the words. Returns `false` with the result if an update began or ended
    /// meanwhile: then the words may be torn.
    #[inline]
    pub(super) fn read<T>(&self, read: impl FnOnce(&[Word; N]) -> T) -> (T, bool) {
        let sequence = self.sequence.load(Ordering::Acquire);
        let result = read(self.copy(sequence));
        fence(Ordering::Acquire);
        (result, self.sequence.load(Ordering::Relaxed) == sequence)
    }

    /// Loads all words. The loop repeats only if another caller made progress.
    pub(super) fn snapshot(&self) -> Snapshot<N> {
        loop {
            let sequence = self.sequence.load(Ordering::Acquire);
            let words = self.copy(sequence).each_ref().map(Word::load);
            let previous = self.copy(sequence.wrapping_add(STEP)).each_ref().map(Word::load);
            fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == sequence {
                let previous = (sequence & WRITER == 0).then_some(previous);
                return Snapshot { sequence, words, previous };
            }
        }
    }

    /// Publishes new words, if nobody updated or began to since `snapshot`. Returns whether it did.
    pub(super) fn update(&self, snapshot: &Snapshot<N>, words: &[u64; N]) -> bool {
        let old = snapshot.sequence;
        let writing = old | WRITER;
        if snapshot.has_writer()
            || self.sequence.compare_exchange(old, writing, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return false;
        }
        fence(Ordering::Release);
        let next = old.wrapping_add(STEP);
        for (to, word) in self.copy(next).iter().zip(words) {
            to.store(*word);
        }
        self.sequence.store(next, Ordering::Release);
        true
    }

    /// The copy that a sequence number selects.
    #[inline]
    fn copy(&self, sequence: usize) -> &[Word; N] {
        const { assert!(size_of::<Words<N>>() == STEP) };
        &self.copies[sequence / STEP % 2].0
    }
}

/// 64 bits. The latch detects torn words, so a 32-bit machine can use two plain loads.
pub(super) struct Word([AtomicUsize; (u64::BITS / usize::BITS) as usize]);

impl Word {
    const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; (u64::BITS / usize::BITS) as usize])
    }

    #[inline]
    pub(super) fn load(&self) -> u64 {
        self.0.iter().rev().fold(0, |word: u64, part| {
            word.checked_shl(usize::BITS).unwrap_or(0) | part.load(Ordering::Relaxed) as u64
        })
    }

    fn store(&self, word: u64) {
        for (part, place) in self.0.iter().zip(0..) {
            part.store((word >> (place * usize::BITS)) as usize, Ordering::Relaxed);
        }
    }
}
