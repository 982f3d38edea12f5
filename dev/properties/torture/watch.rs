//! [`Watch`]: reads a clock through a history, and records how wrong it was.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::clocks::{Clock, Contender, Follows};
use crate::histories::History;
use crate::thread::Thread;
use crate::world::MICRO;

/// The time between two pairs of reads: short enough for this project's clock to stay on the
/// counter.
const GAP: u128 = 100 * MICRO;
/// A clock that is farther from the kernel's clock is wrong, in nanoseconds.
const WRONG: u64 = 10_000;
/// A clock that shows one time for longer stands still, in nanoseconds. A clock of microseconds
/// does not.
const STILL: u64 = 1_000_000;

/// The findings about a clock in a history: the worst of all machines. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// The largest error of the time since the first read.
    pub(crate) error: u64,
    /// The error of the last read.
    pub(crate) last_error: u64,
    /// The longest time for which it was wrong.
    pub(crate) wrong_for: u64,
    /// The largest step back.
    pub(crate) back: u64,
    /// The longest time for which it stood still, or 0.
    pub(crate) still: u64,
    /// The clock's own statement in the end, on the machine with the largest error.
    pub(crate) says: String,
}

impl Record {
    pub(crate) fn is_wrong(&self) -> bool {
        self.error > WRONG
    }

    pub(crate) fn stays_wrong(&self) -> bool {
        self.last_error > WRONG
    }

    fn worst(self, other: Self) -> Self {
        let is_worse = other.error >= self.error;
        Self {
            error: self.error.max(other.error),
            last_error: self.last_error.max(other.last_error),
            wrong_for: self.wrong_for.max(other.wrong_for),
            back: self.back.max(other.back),
            still: self.still.max(other.still),
            says: if is_worse { other.says } else { self.says },
        }
    }
}

/// A clock in a history.
pub(crate) struct Watch {
    pub(crate) thread: Rc<Thread>,
    clock: Box<dyn Clock>,
    follows: Follows,
    /// The clock's time minus the kernel's, at the first read.
    offset: Cell<Option<i64>>,
    /// The last time, and the kernel's when the clock first showed it.
    last: Cell<(i64, u64)>,
    /// The kernel's time when the clock became wrong, while it is.
    wrong_since: Cell<Option<u64>>,
    record: RefCell<Record>,
    /// The longest time for which it reads without an event.
    longest: u128,
}

/// Plays a history with a clock on each of its machines. A span without an event lasts this long at
/// most.
pub(crate) fn play(history: &History, contender: Contender, longest: u128) -> Record {
    let records = history.threads().map(|thread| {
        let watch = Watch::new(thread, contender, longest);
        (history.play)(&watch);
        Record {
            says: watch.clock.says(),
            ..watch.record.take()
        }
    });
    records.fold(Record::default(), Record::worst)
}

impl Watch {
    fn new(thread: Rc<Thread>, contender: Contender, longest: u128) -> Self {
        let clock = (contender.start)(&thread);
        Self {
            thread,
            clock,
            follows: contender.follows,
            offset: Cell::new(None),
            last: Cell::new((i64::MIN, 0)),
            wrong_since: Cell::new(None),
            record: RefCell::default(),
            longest,
        }
    }

    /// Reads twice every 0.1 ms for so long.
    pub(crate) fn read_for(&self, picos: u128) {
        for _ in 0..picos.min(self.longest) / GAP {
            self.read();
            self.read();
            self.thread.world.pass(GAP);
        }
    }

    fn kernel(&self) -> i64 {
        match self.follows {
            Follows::Monotonic => self.thread.world.kernel() as i64,
            Follows::Realtime => self.thread.world.wall(),
        }
    }

    /// The kernel's clock just before and just after the read are the limits of a right answer.
    fn read(&self) {
        self.thread.hand_over();
        let start = self.thread.world.kernel();
        let before = self.kernel();
        let time = self.clock.read() as i64;
        let after = self.kernel();
        let offset = self.offset.get().unwrap_or(time.wrapping_sub(after));
        self.offset.set(Some(offset));
        let since_start = time.wrapping_sub(offset);
        let error = since_start.abs_diff(since_start.clamp(before, after));
        let mut record = self.record.borrow_mut();
        record.error = record.error.max(error);
        record.last_error = error;
        if error > WRONG {
            let since = self.wrong_since.get().unwrap_or(start);
            self.wrong_since.set(Some(since));
            record.wrong_for = record.wrong_for.max(start.abs_diff(since));
        } else {
            self.wrong_since.set(None);
        }
        self.compare_with_last(&mut record, time, start);
    }

    /// Compares a time with the last one, given the kernel's time before its read.
    fn compare_with_last(&self, record: &mut Record, time: i64, start: u64) {
        let (last, since) = self.last.get();
        if time != last {
            if time < last && last != i64::MIN {
                record.back = record.back.max(last.abs_diff(time));
            }
            self.last.set((time, self.thread.world.kernel()));
            return;
        }
        let still = start.saturating_sub(since);
        if still > STILL {
            record.still = record.still.max(still);
        }
    }
}
