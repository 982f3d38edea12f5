//! [`Witness`]: reads the clock on a simulated machine, and fails if the time is wrong.

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::time::Duration;

use proptest::strategy::Strategy;
use vdso_time::Timespec;

use super::world::{MICRO, MILLI, Machine, NANO, World};
use crate::cases;
use crate::engine::clock::CounterClock;
use crate::engine::segment::Segment;
use crate::engine::source::Source;
use crate::engine::status::{State, Statistics, Status};

/// The time after which a segment has ended, and every reader has seen it.
pub(crate) const SEGMENT: u128 = 17 * MILLI;
/// The time until the counter is used.
pub(crate) const CALIBRATION: u128 = 13 * MILLI;

pub(crate) struct Witness {
    /// As it was at first.
    pub(crate) machine: Machine,
    pub(crate) world: Rc<World>,
    pub(crate) clock: CounterClock<Rc<World>>,
    /// The latest time that a read returned.
    latest: Cell<u64>,
    /// The last bound of a segment; before the first one, 12 ticks.
    bound: Cell<u64>,
    /// Whether each time must be within the error bound.
    pub(crate) is_accurate: Cell<bool>,
    /// Whether times must not go back.
    is_ordered: Cell<bool>,
    /// The actions of others during an interrupt.
    pub(crate) intrusion: Cell<fn(&Self)>,
    /// The wall-clock time that these others read.
    pub(crate) intruder_saw: Cell<Option<i64>>,
}

/// A segment, and how many were made until it was.
pub(crate) struct Numbered {
    pub(crate) segment: Segment,
    pub(crate) number: u64,
}

/// Checks what holds on each of these machines in each of these cases.
#[track_caller]
pub(crate) fn check<M: Strategy<Value = Machine>, C: Strategy>(
    usual: u32,
    machines: M,
    cases: C,
    holds: impl Fn(&Witness, C::Value),
) {
    cases::check(usual, &(machines, cases), |(machine, case)| {
        holds(&Witness::new(machine), case);
        true
    });
}

pub(crate) fn statistics(clock: &CounterClock<Rc<World>>) -> Statistics {
    clock.statistics(&clock.load())
}

/// Returns the error bound in nanoseconds.
pub(crate) fn bound(clock: &CounterClock<Rc<World>>) -> u64 {
    clock.state().error_bound.as_nanos().try_into().unwrap()
}

impl Witness {
    pub(crate) fn new(machine: Machine) -> Rc<Self> {
        Rc::new_cyclic(|witness: &Weak<Self>| {
            let intruder = Weak::clone(witness);
            let world = World::new(machine, move || {
                intruder
                    .upgrade()
                    .inspect(|witness| (witness.intrusion.get())(witness));
            });
            let world = Rc::new(world);
            Self {
                machine,
                clock: CounterClock::new(Rc::clone(&world)),
                world,
                latest: Cell::new(0),
                bound: Cell::new(30 + 12_000_000_000 / machine.hertz.max(1)),
                is_accurate: Cell::new(true),
                is_ordered: Cell::new(true),
                intrusion: Cell::new(|witness| _ = witness.read()),
                intruder_saw: Cell::new(None),
            }
        })
    }

    /// Reads the monotonic clock. The time must be within the bound of just before, and 500 ppm of
    /// the time since. If other readers can have made a segment since, its bound counts too.
    #[track_caller]
    pub(crate) fn read(&self) -> Option<u64> {
        let latest = self.latest.get();
        let is_accurate = self.is_accurate.get();
        let start = self.world.kernel();
        let State {
            status,
            frequency,
            error_bound,
            ..
        } = self.clock.state();
        assert_eq!(
            error_bound == Duration::MAX,
            self.world.is_denied.get(),
            "{error_bound:?}"
        );
        let mut bound = u64::try_from(error_bound.as_nanos()).unwrap_or(u64::MAX);
        assert_eq!(
            frequency.is_some(),
            matches!(status, Status::Used | Status::Stale),
            "{status}"
        );
        assert!(status != Status::Used || bound >= 30, "{bound}");
        let before = self.world.kernel();
        let fast = self.clock.monotonic(Source::ticks_ordered);
        let Some(nanos) = fast.or_else(|| self.clock.slow_monotonic()) else {
            assert!(
                self.world.is_denied.get(),
                "no time, though no sandbox denies it"
            );
            return None;
        };
        let after = self.world.kernel();
        if self.machine.is_shared {
            bound = bound.max(self.last_bound());
        }
        bound = bound.saturating_add((after - start).div_ceil(2000));
        if self.is_ordered.get() {
            assert!(
                nanos >= latest,
                "{nanos} after {latest}: back by {}",
                latest - nanos
            );
        }
        if is_accurate && self.is_accurate.get() {
            let allowed = before.saturating_sub(bound)..=after.saturating_add(bound);
            assert!(
                allowed.contains(&nanos),
                "{nanos} is not in {allowed:?}, the bound is {bound}"
            );
        }
        self.latest.set(self.latest.get().max(nanos));
        Some(nanos)
    }

    /// Returns the monotonic time by a fast or a slow read.
    pub(crate) fn time(&self) -> u64 {
        self.clock
            .monotonic(Source::ticks)
            .or_else(|| self.clock.slow_monotonic())
            .unwrap()
    }

    /// Returns the bound now, or the latest segment's bound if that was larger: a segment can begin
    /// and end during a read.
    fn last_bound(&self) -> u64 {
        let State {
            status,
            error_bound,
            ..
        } = self.clock.state();
        let bound = error_bound.as_nanos() as u64;
        if status == Status::Used && error_bound < Duration::MAX {
            self.bound.set(bound);
        }
        self.bound.get().max(bound)
    }

    /// Returns the segment of the present tick, and its number. Reads until there is one.
    pub(crate) fn segment_in_force(&self) -> Numbered {
        loop {
            let ticks = self.world.foresee(0, || self.world.ticks_ordered());
            if let Some(segment) = self.clock.segment_at(ticks) {
                let latest = self.clock.load();
                let is_next_made = latest.segment != segment;
                return Numbered {
                    segment,
                    number: latest.segments - u64::from(is_next_made),
                };
            }
            self.time();
        }
    }

    /// Returns the status. No time passes.
    pub(crate) fn status(&self) -> Status {
        self.world.foresee(0, || self.clock.state().status)
    }

    /// Returns the nanoseconds of a fast read of the wall clock, or of a slow one.
    pub(crate) fn wall(&self, fast: Option<Timespec>) -> Option<i64> {
        fast.map(|time| time.as_nanos() as i64)
            .or_else(|| self.clock.slow_realtime())
    }

    /// Reads the wall clock. The time may be wrong by the bound and 200 ns.
    #[track_caller]
    pub(crate) fn read_wall(&self) -> Option<i64> {
        let before = self.world.wall();
        let nanos = self.wall(self.clock.realtime(Source::ticks_ordered))?;
        let after = self.world.wall();
        let bound = self.last_bound() as i64 + 200;
        assert!(
            (before - bound..=after + bound).contains(&nanos),
            "{nanos} not in {before}..={after}"
        );
        Some(nanos)
    }

    /// Reads every 30 us for so long: often enough for each segment to follow the one before.
    #[track_caller]
    pub(crate) fn watch(&self, picos: u128) {
        for _ in 0..picos / (30 * MICRO) {
            self.read();
            self.world.pass(30 * MICRO);
        }
    }

    /// Reads the wall clock, which is not set, every 30 us for so long. It must not go back.
    #[track_caller]
    pub(crate) fn watch_wall(&self, picos: u128) {
        let mut latest = i64::MIN;
        for _ in 0..=picos / (30 * MICRO) {
            let time = self.read_wall().unwrap();
            assert!(time >= latest, "back by {}", latest - time);
            latest = time;
            self.world.pass(30 * MICRO);
        }
    }

    /// Reads until the counter is used, for 100 ms at most.
    #[track_caller]
    pub(crate) fn watch_until_used(&self) {
        let end = self.world.kernel() + 100_000_000;
        while self.status() != Status::Used {
            assert!(self.world.kernel() < end, "{}", self.status());
            self.watch(60 * MICRO);
        }
    }

    /// Watches a clock that need not be accurate, or not ordered, at first.
    #[track_caller]
    pub(crate) fn tolerate(&self, is_ordered: bool, picos: u128) {
        self.is_accurate.set(false);
        self.is_ordered.set(is_ordered);
        self.watch(picos);
        self.is_accurate.set(true);
        if !self.is_ordered.replace(true) {
            self.latest.set(0);
        }
    }

    /// Fails unless the measured rate is this one, with an error of so much.
    #[track_caller]
    pub(crate) fn assert_frequency(&self, hertz: u64, error: u64) {
        let measured = self.clock.state().frequency.unwrap();
        assert!(
            measured.abs_diff(hertz) <= error,
            "{measured} Hz, not {hertz}"
        );
    }

    /// Returns how long the current segment will last.
    pub(crate) fn left(&self) -> u128 {
        let mut low = 0;
        let mut high = 20 * MILLI;
        while high - low > NANO {
            let middle = u128::midpoint(low, high);
            let is_used = self
                .world
                .foresee(middle, || self.clock.state().status == Status::Used);
            if is_used { low = middle } else { high = middle }
        }
        low
    }

    /// Returns the status after a read. A segment that ends during an interrupt does not count.
    #[track_caller]
    pub(crate) fn settled(&self) -> Status {
        let mut tries = (0..20).map(|_| self.read().map(|_| self.status()));
        tries
            .find(|&status| status != Some(Status::Stale))
            .flatten()
            .unwrap_or(Status::Stale)
    }
}
