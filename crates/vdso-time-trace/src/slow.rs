//! [`Slow`]: the reads that took as long as a system call.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::event::Event;
use crate::per_site::Fresh;
use crate::timing;
use crate::tracer::Trace;

/// Counts the reads whose [cost](Event::cost) is above a threshold.
///
/// The default threshold is half of a system call, measured by `attach`: a slower read has probably
/// entered the kernel. This is a guess, because a preempted read is slow too. The package
/// vdso-doctor has the proof.
#[derive(Debug)]
pub struct Slow {
    /// In nanoseconds; 0 until it is measured.
    threshold: AtomicU64,
    reads: AtomicU64,
    above: AtomicU64,
    longest: AtomicU64,
}

impl Slow {
    /// Creates a tracer with the default threshold.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_threshold(0)
    }

    /// Creates a tracer with a threshold in nanoseconds. 0 is the default threshold.
    #[must_use]
    pub const fn with_threshold(nanos: u64) -> Self {
        let [reads, above, longest] = [const { AtomicU64::new(0) }; 3];
        Self { threshold: AtomicU64::new(nanos), reads, above, longest }
    }

    /// Returns the threshold in nanoseconds, once it is known.
    #[must_use]
    pub fn threshold(&self) -> Option<u64> {
        Some(self.threshold.load(Ordering::Relaxed)).filter(|nanos| *nanos != 0)
    }

    /// Returns the number of reads.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Returns the number of reads above the threshold.
    #[must_use]
    pub fn slow(&self) -> u64 {
        self.above.load(Ordering::Relaxed)
    }

    /// Returns the nanoseconds of the longest read.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.longest.load(Ordering::Relaxed)
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
            self.above.fetch_add(1, Ordering::Relaxed);
        }
        // Most reads skip the write to the shared cache line.
        if cost > self.longest() {
            self.longest.fetch_max(cost, Ordering::Relaxed);
        }
    }
}
