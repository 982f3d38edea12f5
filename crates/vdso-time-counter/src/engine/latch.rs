//! [`Latch`]: words that one caller at a time updates while others read them, without waiting.
//!
//! A latch is built like Linux's `seqcount_latch_t` (Documentation/locking/seqlock.rst): it has two
//! copies of the words, and a sequence number that selects the copy to read. A writer changes only
//! the other copy. So a reader always finds one complete copy, even if the reader is a signal
//! handler that interrupts the writer.
//!
//! The sequence number also has a *writer bit*. A caller computes the new words, sets the bit with
//! a compare-and-swap from the sequence number that it had read, and stores the words. One last
//! store clears the bit and advances the number. If another caller was faster, the words are
//! dropped.
//!
//! No other caller takes the bit away from its holder, because the holder might merely be preempted
//! or stopped, and would continue its stores later. If the holder does not exist any more, as in
//! the child of a fork by another thread, the other callers can still read, but can no longer
//! update.
//!
//! # An example
//!
//! The sequence number is 128 x n: an even n selects copy 0, an odd n copy 1.
//!
//! | | sequence number | copy 0 | copy 1 |
//! |---|---:|---|---|
//! | before | 256 | words A (selected) | words of the update before |
//! | a writer sets its bit | 257 | words A (selected) | words of the update before |
//! | it stores 3 of the 16 words B | 257 | words A (selected) | torn |
//! | it has stored all of them | 257 | words A (selected) | words B |
//! | it clears the bit and advances | 384 | words A | words B (selected) |
//!
//! A reader loads the number before and after the words. If it finds 256 both times, or 257 both
//! times, the words that it has read are words A, and complete. If the number has changed, it drops
//! what it read, because a later update could already be storing into copy 0. A signal handler that
//! interrupts the writer while copy 1 is torn finds 257 twice, and reads words A.
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
//! - W4 synchronizes with R1: a reader that sees a sequence number sees the words that the number
//!   selects. If R1 sees the value of a W1 instead, the W4 before that W1 synchronizes with R1,
//!   because W1 is a read-modify-write and so continues the release sequence of that W4. W4 also
//!   synchronizes with the next writer's W1, which is `Acquire`, so the stores of all writers are
//!   in order.
//! - W2 synchronizes with R3 if R2 sees a word of W3. Then R4 sees W1 or a later value. So if R1
//!   sees the sequence number from before an update's W1, and R2 loads a word of that update, R4
//!   finds a changed sequence number, and the reader drops the words.
//!
//! On a 32-bit machine the sequence number repeats after 2^25 updates. They take hours, so only a
//! reader that was stopped for hours could miss a change.

use core::sync::atomic::{AtomicUsize, Ordering, fence};

/// Set while a caller stores the next words.
const WRITER: usize = 1;
/// The increment of the sequence number: the size of 16 words in bytes. So in a latch of 16 words,
/// a mask turns the sequence number into the offset of the copy that it selects.
const STEP: usize = 128;

/// Two copies of `N` words.
#[repr(C)]
pub(crate) struct Latch<const N: usize> {
    sequence: AtomicUsize,
    copies: [[Word; N]; 2],
}

/// The sequence number that a reader saw.
#[derive(Clone, Copy)]
pub(crate) struct Version(usize);

impl Version {
    /// Returns whether a caller held the writer bit.
    pub(crate) fn has_writer(self) -> bool {
        self.0 & WRITER != 0
    }
}

impl<const N: usize> Latch<N> {
    pub(crate) const fn new() -> Self {
        // The sequence number does not start at 0, because the linker would put a static latch
        // whose bytes are all 0 into .bss, which can be on another page than .data. In .data, the
        // latch is beside vdso-time's slots, which hold the pointers to the vDSO's functions.
        Self {
            sequence: AtomicUsize::new(STEP),
            copies: [const { [const { Word::new() }; N] }; 2],
        }
    }

    /// Applies `read` to the version, the words of the last update, and the words of the update
    /// before. While the version has a writer, the older words can be torn.
    ///
    /// Returns `None` if a writer began or ended meanwhile, because any of the words may then be
    /// torn.
    #[inline]
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(Version, [&[Word; N]; 2]) -> Option<T>,
    ) -> Option<T> {
        let sequence = self.sequence.load(Ordering::Acquire);
        let words = [sequence, sequence.wrapping_add(STEP)].map(|sequence| self.copy(sequence));
        let result = read(Version(sequence), words);
        fence(Ordering::Acquire);
        if self.sequence.load(Ordering::Relaxed) == sequence {
            result
        } else {
            None
        }
    }

    /// Reads in the same way as [`read`](Self::read), until no writer interferes. It repeats only
    /// if another caller made progress.
    #[inline]
    pub(crate) fn read_whole<T>(&self, read: impl Fn(Version, [&[Word; N]; 2]) -> T) -> T {
        loop {
            if let Some(result) = self.read(|version, words| Some(read(version, words))) {
                return result;
            }
        }
    }

    /// Loads the words of the last update, and its version.
    #[inline]
    pub(crate) fn snapshot(&self) -> (Version, [u64; N]) {
        self.read_whole(|version, [words, _]| (version, words.each_ref().map(Word::load)))
    }

    /// Publishes new words, unless another caller has updated the latch, or begun to update it,
    /// since `version`. Returns whether the words were published.
    #[inline]
    pub(crate) fn update(&self, version: Version, words: &[u64; N]) -> bool {
        let Version(old) = version;
        let writing = old | WRITER;
        if version.has_writer()
            || self
                .sequence
                .compare_exchange(old, writing, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
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

    /// Returns the copy that a sequence number selects.
    #[inline]
    fn copy(&self, sequence: usize) -> &[Word; N] {
        &self.copies[sequence / STEP % 2]
    }
}

/// A word of 64 bits. A 32-bit machine loads and stores each half separately, which is safe because
/// the latch detects torn words.
#[repr(transparent)]
pub(crate) struct Word([AtomicUsize; (u64::BITS / usize::BITS) as usize]);

impl Word {
    const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; (u64::BITS / usize::BITS) as usize])
    }

    #[inline]
    pub(crate) fn load(&self) -> u64 {
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
