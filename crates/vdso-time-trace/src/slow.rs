//! [`Slow`]: the reads that took as long as a system call.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::event::Event;
use crate::per_site::Fresh;
use crate::timing;
use crate::tracer::Trace;

/// Counts reads that [took](Event::cost) longer than a threshold.
///
/// By default that is half of a system call, measured when the tracer is attached: a read that takes longer has, at a guess, entered the
/// kernel. It is no more than a guess: a thread that was interrupted or preempted while it read takes as long, and a system call may be
/// faster than it was then. `vdso-doctor` has the proof.
#[derive(Debug)]
pub struct Slow {
    /// In nanoseconds; 0 until it is measured.
    threshold: AtomicU64,
    reads: AtomicU64,
    over: AtomicU64,
    longest: AtomicU64,
}

impl Slow {
    /// Of reads that take longer than half a system call.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_threshold(0)
    }

    /// Of reads that take longer than so many nanoseconds; 0 is the default.
    #[must_use]
    pub const fn with_threshold(nanos: u64) -> Self {
        Self {
            threshold: AtomicU64::new(nanos),
            reads: AtomicU64::new(0),
            over: AtomicU64::new(0),
            longest: AtomicU64::new(0),
        }
    }

    /// The threshold in nanoseconds, once it is known.
    #[must_use]
    pub fn threshold(&self) -> Option<u64> {
        Some(self.threshold.load(Ordering::Relaxed)).filter(|nanos| *nanos != 0)
    }

    /// All reads.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// The reads that took longer than the threshold: with the default one, those that were system calls, at a guess.
    #[must_use]
    pub fn slow(&self) -> u64 {
        self.over.load(Ordering::Relaxed)
    }

    /// What the longest read took, in nanoseconds.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.longest.load(Ordering::Relaxed)
    }
}

impl Default for Slow {
    fn default() -> Self {
        Self::new()
    }
}

impl Fresh for Slow {
    const FRESH: Self = Self::new();
}

impl Trace for Slow {
    const TIMED: bool = true;

    fn attached(&self) {
        if self.threshold().is_none() {
            let half = (timing::system_call() / 2).max(1);
            self.threshold.store(half, Ordering::Relaxed);
        }
    }

    fn event(&self, event: &Event) {
        let Some(cost) = event.cost() else { return };
        self.reads.fetch_add(1, Ordering::Relaxed);
        if cost > self.threshold.load(Ordering::Relaxed) {
            self.over.fetch_add(1, Ordering::Relaxed);
        }
        // Without the test, each read would write.
        if cost > self.longest() {
            self.longest.fetch_max(cost, Ordering::Relaxed);
        }
    }
}
