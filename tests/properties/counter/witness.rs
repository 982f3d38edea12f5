//! [`Witness`]: reads the clock under test, and remembers what it said.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::clock::CounterClock;
use crate::sample::Source;
use crate::status::{State, Status};
use crate::world::{MICRO, MILLI, Machine, NANO, Reader, World};

/// A clock on a simulated machine.
pub(crate) struct Witness {
    pub(crate) world: Rc<World>,
    clock: CounterClock<Reader>,
    /// The latest time of all the reads that ended.
    latest: Cell<u64>,
    /// The last bound of a line.
    bound: Cell<u64>,
    /// Whether a read must be within the bound: nothing happened of late that the bound does not allow for.
    pub(crate) is_calm: Cell<bool>,
    /// Whether times must not go back.
    pub(crate) is_ordered: Cell<bool>,
    /// By how many nanoseconds reads by a line were off.
    pub(crate) errors: RefCell<Vec<u64>>,
    /// How many reads the kernel's clock answered.
    pub(crate) asked: Cell<u32>,
}

impl Witness {
    /// Every interrupted read is interrupted by other reads.
    pub(crate) fn new(machine: Machine) -> Rc<Self> {
        let world = Rc::new(World::new(machine));
        let clock = CounterClock::new(Reader(Rc::clone(&world)));
        let witness = Rc::new(Self {
            world,
            clock,
            latest: Cell::new(0),
            bound: Cell::new(0),
            is_calm: Cell::new(true),
            is_ordered: Cell::new(true),
            errors: RefCell::default(),
            asked: Cell::new(0),
        });
        let intruder = Rc::downgrade(&witness);
        witness.world.intrude(Some(Rc::new(move || {
            if let Some(witness) = intruder.upgrade() {
                witness.read();
            }
        })));
        witness
    }

    /// Reads the monotonic clock, and fails if it goes back or is off by more than it may be.
    #[track_caller]
    pub(crate) fn read(&self) -> Option<u64> {
        let (latest, before, is_calm) = (self.latest.get(), self.world.kernel(), self.is_calm.get());
        let bound = self.state().error_bound;
        let fast = self.clock.monotonic(Source::ticks_ordered);
        let instant = self.world.read_at.get();
        let Some(nanos) = fast.or_else(|| self.clock.slow_monotonic()) else {
            assert!(self.world.is_denied.get(), "no time, though there is one");
            return None;
        };
        let after = self.world.kernel();
        let bound = bound.max(self.state().error_bound);
        // The line may have been made and have ended between the two.
        let bound = if bound == 0 { self.bound.get() } else { bound };
        self.bound.set(bound);
        if self.is_ordered.get() {
            assert!(nanos >= latest, "{nanos} after {latest}: back by {}", latest - nanos);
        }
        if is_calm && self.is_calm.get() {
            let allowed = before.saturating_sub(bound)..=after + bound;
            assert!(allowed.contains(&nanos), "{nanos} is not in {allowed:?}, {bound} being the bound");
        }
        self.latest.set(self.latest.get().max(nanos));
        if fast.is_none() {
            self.asked.set(self.asked.get() + 1);
        } else if is_calm && self.is_calm.get() && before <= instant && instant <= after {
            self.errors.borrow_mut().push(nanos.abs_diff(instant));
        }
        Some(nanos)
    }

    /// A time before all that were read is no step back now.
    pub(crate) fn forget(&self) {
        self.latest.set(0);
    }

    /// Reads the wall clock, and says how far it was off.
    pub(crate) fn wall(&self) -> Option<u64> {
        let before = self.world.wall();
        let fast = self.clock.realtime(Source::ticks_ordered);
        let nanos = fast.or_else(|| self.clock.slow_realtime())?;
        let after = self.world.wall();
        Some(if nanos < before { before.abs_diff(nanos) } else { (nanos - after).max(0) as u64 })
    }

    /// Reads every 50 us for so long.
    #[track_caller]
    pub(crate) fn watch(&self, picos: u128) {
        for _ in 0..picos / (50 * MICRO) {
            self.read();
            self.world.pass(50 * MICRO);
        }
    }

    /// How long the line that there is will last.
    pub(crate) fn left(&self) -> u128 {
        let is_used = |picos| self.world.foresee(picos, || self.status() == Status::Used);
        let (mut low, mut high) = (0, 20 * MILLI);
        while high - low > NANO {
            let middle = u128::midpoint(low, high);
            if is_used(middle) { low = middle } else { high = middle }
        }
        low
    }

    pub(crate) fn status(&self) -> Status {
        self.clock.status()
    }

    /// The status, but for a line that ended while a read was interrupted.
    #[track_caller]
    pub(crate) fn settled(&self) -> Status {
        let mut tries = (0..20).map(|_| {
            self.read();
            self.status()
        });
        tries.find(|&status| status != Status::Stale).unwrap_or(Status::Stale)
    }

    pub(crate) fn frequency(&self) -> Option<u64> {
        self.clock.frequency()
    }

    pub(crate) fn state(&self) -> State {
        self.clock.state()
    }

    pub(crate) fn check(&self) -> Result<(), Status> {
        self.clock.check()
    }
}
