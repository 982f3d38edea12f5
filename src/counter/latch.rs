//! [`Latch`]: a few words that one caller renews while others read them, and nobody waits.
//!
//! There are two copies, and a state that says which of them counts: `128 * renewals`, plus 1 while a caller holds the claim
//! to the next renewal. The claim is one compare-and-swap from the state that the caller read before it computed; then it
//! stores the other copy, and releases the claim by the state that makes that copy count. So a claim is held for a bounded
//! number of stores, and a reader, be it a signal handler in the middle of them, has a whole copy at any time. A claim is
//! never taken from who holds it: one that a fork lost (the child has the claim, and not the thread) stays lost.
//!
//! # Memory ordering
//!
//! A reader loads the state (`Acquire`), then words, then, behind an `Acquire` fence, the state again. A holder's claim is
//! followed by a `Release` fence, its words, and a `Release` store of the state. The store pairs with the first load: who
//! sees the state sees the words of the copy that counts. The fences pair: who sees a word of a later renewal sees that
//! renewal's claim in the second load, and knows that what it read may be torn. A state comes again after 2^25 renewals on
//! a 32-bit machine: for a torn read, a reader would have to be stopped between its two loads for three days, to the very renewal.

use core::sync::atomic::{AtomicUsize, Ordering, fence};

/// The bit of the state that is set while the claim is held.
const CLAIMED: usize = 1;
/// From one state to the next: as far as from one copy to the other, so that the state itself says where a copy is.
const NEXT: usize = 128;

/// Two copies of `N` words.
#[repr(C)]
pub(super) struct Latch<const N: usize> {
    copies: [Copy<N>; 2],
    state: AtomicUsize,
}

/// The words that a read takes are the first, and lie in one cache line.
#[repr(C, align(128))]
struct Copy<const N: usize>([Word; N]);

/// What a reader saw.
#[derive(Clone, Copy)]
pub(super) struct Seen<const N: usize> {
    state: usize,
    /// The words that count.
    pub(super) words: [u64; N],
    /// Those that counted before, unless they are being written over.
    pub(super) before: Option<[u64; N]>,
}

impl<const N: usize> Seen<N> {
    /// Whether a caller held the claim.
    pub(super) fn is_claimed(&self) -> bool {
        self.state & CLAIMED != 0
    }
}

impl<const N: usize> Latch<N> {
    pub(super) const fn new() -> Self {
        Self { copies: [const { Copy([const { Word::new() }; N]) }; 2], state: AtomicUsize::new(0) }
    }

    /// What `read` makes of the words that count; with `false` if a renewal came between, for then they may be torn.
    #[inline]
    pub(super) fn peek<T>(&self, read: impl FnOnce(&[Word; N]) -> T) -> (T, bool) {
        let state = self.state.load(Ordering::Acquire);
        let answer = read(self.copy(state));
        fence(Ordering::Acquire);
        (answer, self.state.load(Ordering::Relaxed) == state)
    }

    /// All the words. A turn of the loop is lost only to a renewal that was gained.
    pub(super) fn load(&self) -> Seen<N> {
        loop {
            let state = self.state.load(Ordering::Acquire);
            let words = self.copy(state).each_ref().map(Word::load);
            let before = self.copy(state.wrapping_add(NEXT)).each_ref().map(Word::load);
            fence(Ordering::Acquire);
            if self.state.load(Ordering::Relaxed) == state {
                return Seen { state, words, before: (state & CLAIMED == 0).then_some(before) };
            }
        }
    }

    /// Makes these words count, unless others do since `seen`, or somebody is about to make them.
    pub(super) fn renew(&self, seen: &Seen<N>, words: &[u64; N]) -> bool {
        let state = seen.state;
        if seen.is_claimed()
            || self
                .state
                .compare_exchange(state, state | CLAIMED, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
        {
            return false;
        }
        fence(Ordering::Release);
        let state = state.wrapping_add(NEXT);
        for (place, word) in self.copy(state).iter().zip(words) {
            place.store(*word);
        }
        self.state.store(state, Ordering::Release);
        true
    }

    /// The copy that counts in this state.
    #[inline]
    fn copy(&self, state: usize) -> &[Word; N] {
        const { assert!(size_of::<Copy<N>>() == NEXT) };
        &self.copies[state / NEXT % 2].0
    }
}

/// 64 bits, which the latch keeps whole: so two loads do where one would cost more.
pub(super) struct Word {
    #[cfg(target_pointer_width = "64")]
    whole: AtomicUsize,
    #[cfg(not(target_pointer_width = "64"))]
    halves: [AtomicUsize; 2],
}

#[cfg(target_pointer_width = "64")]
impl Word {
    const fn new() -> Self {
        Self { whole: AtomicUsize::new(0) }
    }

    #[inline]
    pub(super) fn load(&self) -> u64 {
        self.whole.load(Ordering::Relaxed) as u64
    }

    fn store(&self, word: u64) {
        self.whole.store(word as usize, Ordering::Relaxed);
    }
}

#[cfg(not(target_pointer_width = "64"))]
impl Word {
    const fn new() -> Self {
        Self { halves: [const { AtomicUsize::new(0) }; 2] }
    }

    #[inline]
    pub(super) fn load(&self) -> u64 {
        let [low, high] = self.halves.each_ref().map(|half| half.load(Ordering::Relaxed) as u64);
        (high << 32) | low
    }

    fn store(&self, word: u64) {
        let [low, high] = &self.halves;
        low.store(word as u32 as usize, Ordering::Relaxed);
        high.store((word >> 32) as usize, Ordering::Relaxed);
    }
}
