//! [`Latch`]: words that one caller at a time updates while others read them, without waiting.
//!
//! The design is that of Linux's `seqcount_latch_t` (include/linux/seqlock.h,
//! Documentation/locking/seqlock.rst): two copies of the data, and a sequence number that selects
//! the copy to read. A writer changes only the other copy. So a reader always finds one complete
//! copy, even a signal handler that interrupts the writer.
//!
//! Linux leaves the exclusion of writers to the caller. Here the sequence number has a *writer
//! bit*. A caller computes the new words first, then sets the bit by a compare-and-swap from the
//! sequence number that it had read. It stores the words. One last store clears the bit and
//! advances the sequence number. If another caller was faster, the compare-and-swap fails and the
//! words are dropped.
//!
//! The bit is held for a bounded number of stores, and is never taken from its holder. If a process
//! forks during these stores, the child has the bit but not the thread: it can read, not update.
//!
//! The *hot words*, which most reads need, exist a third time, in the cache line of the sequence
//! number, as in a `seqlock_t`. [`Latch::read`] loads these and fails while a writer stores. Then
//! the caller takes a [snapshot](Latch::snapshot), which does not fail. The sequence number also
//! has flags of the update, so that a read can branch on its first load.
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
//! - [`Latch::read`] takes words that a writer stores in place. It fails if R1 sees the writer bit,
//!   and by R4 if the writer came later. So its words are those of R1's update.
//! - W2 synchronizes with R3 if R2 sees a word of W3. Then R4 sees W1 or a later value. So a reader
//!   whose words come from a later update than R1 sees a changed sequence number and drops them.
//!
//! The sequence number repeats after 2^25 updates on a 32-bit machine. Only a reader that stops
//! between R1 and R4 for exactly so many updates, which take three days, could miss a change.

use core::sync::atomic::{AtomicUsize, Ordering, fence};

/// Set while a caller stores the next words.
pub(super) const WRITER: usize = 1;
/// The bits of the sequence number that an update may set as flags.
const FLAGS: usize = 0xe;
/// The increment of the sequence number: the size of a copy, so that a mask gives its offset.
const STEP: usize = 128;

/// Two copies of `N` words, and a third place for the `H` hot words and the late word.
#[repr(C)]
pub(super) struct Latch<const N: usize, const H: usize, B> {
    sequence: AtomicUsize,
    hot: [Word; H],
    /// Other data in the cache line of the sequence number.
    pub(super) beside: B,
    /// The late word: one more hot word, in another cache line.
    pub(super) late: Word,
    copies: [Words<N>; 2],
}

/// Aligned to two cache lines of 64 bytes.
#[repr(C, align(128))]
struct Words<const N: usize>([Word; N]);

/// What an update stores.
#[derive(Clone, Copy)]
pub(super) struct Update<const N: usize, const H: usize> {
    pub(super) words: [u64; N],
    /// The words beside the sequence number.
    pub(super) hot: [u64; H],
    /// The late word.
    pub(super) late: u64,
    pub(super) flags: usize,
}

/// The sequence number of a snapshot.
#[derive(Clone, Copy)]
pub(super) struct Version(usize);

impl Version {
    /// Whether a caller held the writer bit.
    pub(super) fn has_writer(self) -> bool {
        self.0 & WRITER != 0
    }
}

impl<const N: usize, const H: usize, B> Latch<N, H, B> {
    pub(super) const fn new(flags: usize, beside: B) -> Self {
        let copies = [const { Words([const { Word::new() }; N]) }; 2];
        let hot = [const { Word::new() }; H];
        Self { sequence: AtomicUsize::new(flags & FLAGS), hot, beside, late: Word::new(), copies }
    }

    /// Applies `read` to the flags, the hot words and the late word. Returns `None` if a writer was
    /// storing or began to, because the words may then be torn.
    #[inline]
    pub(super) fn read<T>(&self, read: impl FnOnce(usize, &[Word; H], &Word) -> Option<T>) -> Option<T> {
        let sequence = self.sequence.load(Ordering::Acquire);
        let result = read(sequence & (FLAGS | WRITER), &self.hot, &self.late);
        fence(Ordering::Acquire);
        result.filter(|_| self.sequence.load(Ordering::Relaxed) == sequence)
    }

    /// Applies `read` to the flags, one hot word and the late word. Each word may be of a later
    /// update than the flags, but none is torn.
    #[inline]
    pub(super) fn read_apart<T>(
        &self,
        at: usize,
        read: impl FnOnce(usize, &Word, &Word) -> Option<T>,
    ) -> Option<T> {
        if size_of::<Word>() == size_of::<usize>() {
            read(self.sequence.load(Ordering::Acquire) & FLAGS, &self.hot[at], &self.late)
        } else {
            self.read(|flags, hot, late| (flags & WRITER == 0).then(|| read(flags, &hot[at], late))?)
        }
    }

    /// Loads all words of the last update, and its version. The loop repeats only if another caller
    /// made progress.
    #[inline]
    pub(super) fn snapshot(&self) -> (Version, [u64; N]) {
        loop {
            let sequence = self.sequence.load(Ordering::Acquire);
            let words = self.copy(sequence).each_ref().map(Word::load);
            fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == sequence {
                return (Version(sequence), words);
            }
        }
    }

    /// Applies `read` to the words of the update before `version`, unless a writer replaced them,
    /// or does. The error is that there was an update since, or a writer began.
    pub(super) fn previous<T>(
        &self,
        version: Version,
        read: impl FnOnce(&[Word; N]) -> T,
    ) -> Result<Option<T>, ()> {
        if version.has_writer() {
            return Ok(None);
        }
        let result = read(self.copy(version.0.wrapping_add(STEP)));
        fence(Ordering::Acquire);
        let is_whole = self.sequence.load(Ordering::Relaxed) == version.0;
        if is_whole { Ok(Some(result)) } else { Err(()) }
    }

    /// Publishes new words, unless another caller updated or began to since `version`. Returns
    /// whether it did.
    #[inline]
    pub(super) fn update(&self, version: Version, update: &Update<N, H>) -> bool {
        let Version(old) = version;
        let writing = old | WRITER;
        if version.has_writer()
            || self.sequence.compare_exchange(old, writing, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return false;
        }
        fence(Ordering::Release);
        let next = (old & !FLAGS).wrapping_add(STEP) | (update.flags & FLAGS);
        for (to, word) in self.copy(next).iter().zip(update.words) {
            to.store(word);
        }
        for (to, word) in self.hot.iter().zip(update.hot) {
            to.store(word);
        }
        self.late.store(update.late);
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

    #[inline]
    fn store(&self, word: u64) {
        for (part, place) in self.0.iter().zip(0..) {
            part.store((word >> (place * usize::BITS)) as usize, Ordering::Relaxed);
        }
    }
}
