//! The slot of a ring, which holds one event: a sequence number, as a seqlock has, and the fields.
//!
//! The number is odd while the slot is written, else it says whose event is in it. Nobody waits: a writer that finds the slot being
//! written, or a later event in it, gives up.
//!
//! # Memory ordering
//!
//! That of a seqlock whose fields are atomics. The writer makes the number odd, then comes a `Release` fence: whoever sees one of its
//! fields sees that number too, or a later one. Its last number is stored with `Release`, after the fields. The reader loads the number
//! with `Acquire`, the fields, and, behind an `Acquire` fence, the number again: if both are the same, every field is that event's. A
//! writer takes over with `Acquire`, so that its fields come after those of the writer before.

use crate::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

pub(crate) struct Slot {
    /// `finished` of the ticket whose event it has, 0 if of none; odd while it is written.
    pub(crate) sequence: AtomicU64,
    pub(crate) site: AtomicUsize,
    pub(crate) cpu: AtomicU32,
    pub(crate) nanos: AtomicI64,
}

/// What is kept of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    /// Its place in `sites()`.
    pub(crate) site: usize,
    pub(crate) cpu: u32,
    pub(crate) nanos: i64,
}

const fn finished(ticket: u64) -> u64 {
    2 * (ticket + 1)
}

impl Slot {
    /// Writes the event of a ticket, unless somebody else is writing, or has written a later one.
    pub(crate) fn write(&self, ticket: u64, fields: Fields) -> bool {
        let finished = finished(ticket);
        let before = self.sequence.load(Ordering::Relaxed);
        let is_free = before % 2 == 0 && before < finished;
        let writing = finished - 1;
        let take = |before| {
            self.sequence.compare_exchange(before, writing, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        if !(is_free && take(before)) {
            return false;
        }
        fence(Ordering::Release);
        self.site.store(fields.site, Ordering::Relaxed);
        self.cpu.store(fields.cpu, Ordering::Relaxed);
        self.nanos.store(fields.nanos, Ordering::Relaxed);
        self.sequence.store(finished, Ordering::Release);
        true
    }

    /// The event of a ticket, if the slot has it, whole.
    pub(crate) fn read(&self, ticket: u64) -> Option<Fields> {
        let is_its = |sequence| sequence == finished(ticket);
        if !is_its(self.sequence.load(Ordering::Acquire)) {
            return None;
        }
        let fields = Fields {
            site: self.site.load(Ordering::Relaxed),
            cpu: self.cpu.load(Ordering::Relaxed),
            nanos: self.nanos.load(Ordering::Relaxed),
        };
        fence(Ordering::Acquire);
        is_its(self.sequence.load(Ordering::Relaxed)).then_some(fields)
    }
}
