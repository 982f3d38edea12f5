//! A slot of [`Ring`](crate::Ring): one event in a seqlock.
//!
//! The sequence number is odd during a write. An even number says whose event is in the slot.
//! Nobody waits: a writer that meets another writer or a later event gives up.
//!
//! # Memory ordering
//!
//! - The writer makes the number odd, and a `Release` fence follows. A reader that sees one of the
//!   writer's fields, and then has an `Acquire` fence, sees the odd number or a later one.
//! - The writer stores the even number with `Release`, after the fields. The reader loads it with
//!   `Acquire`, before the fields. If it is the same after the reader's fence, all fields are
//!   of that event.
//! - A writer takes the slot with `Acquire`, so its fields come after those of the writer before.

use crate::atomic::{AtomicU64, Ordering, fence};

/// An event as numbers: the site's index, the CPU and the time.
pub(crate) type Fields = [u64; 3];

pub(crate) struct Slot {
    pub(crate) sequence: AtomicU64,
    pub(crate) fields: [AtomicU64; 3],
}

/// The sequence number of a finished write. 0 is a slot without an event.
const fn finished(ticket: u64) -> u64 {
    2 * (ticket + 1)
}

impl Slot {
    /// Writes the event of a ticket, unless the slot is being written or has a later event.
    pub(crate) fn write(&self, ticket: u64, fields: Fields) -> bool {
        let finished = finished(ticket);
        let before = self.sequence.load(Ordering::Relaxed);
        let is_free = before % 2 == 0 && before < finished;
        let take = || {
            let writing = finished - 1;
            self.sequence.compare_exchange(before, writing, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        if !(is_free && take()) {
            return false;
        }
        fence(Ordering::Release);
        for (place, field) in self.fields.iter().zip(fields) {
            place.store(field, Ordering::Relaxed);
        }
        self.sequence.store(finished, Ordering::Release);
        true
    }

    /// Reads the event of a ticket, if the slot has it complete.
    pub(crate) fn read(&self, ticket: u64) -> Option<Fields> {
        if self.sequence.load(Ordering::Acquire) != finished(ticket) {
            return None;
        }
        let fields = self.fields.each_ref().map(|field| field.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (self.sequence.load(Ordering::Relaxed) == finished(ticket)).then_some(fields)
    }
}
