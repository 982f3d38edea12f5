//! This project's clock: the engine of `crates/vdso-time-counter` itself.

use std::rc::Rc;

use super::Clock;
use crate::engine::clock::CounterClock;
use crate::engine::source::{Keeper, Source};
use crate::engine::status::{Status, Unavailable};
use crate::thread::{ClockSource, Thread};
use crate::world::MICRO;

/// The thread as the engine reads it.
struct Machine {
    thread: Rc<Thread>,
}

impl Source for Machine {
    fn ticks(&self) -> u64 {
        self.thread.ticks()
    }

    fn ticks_ordered(&self) -> u64 {
        self.thread.ticks_ordered()
    }

    fn monotonic(&self) -> Option<u64> {
        Some(self.thread.monotonic())
    }

    fn realtime(&self) -> Option<i64> {
        Some(self.thread.realtime())
    }

    fn raw(&self) -> Option<i64> {
        Some(self.thread.raw())
    }

    /// Applies the rules of the crate's `machine/linux.rs`.
    fn detect(&self, trusts_hypervisor: bool) -> Result<Keeper, Unavailable> {
        let keeper = match self.thread.clock_source.get() {
            ClockSource::Hpet => return Err(Unavailable::ClockSource),
            ClockSource::Kvm => Keeper::Hypervisor,
            ClockSource::Counter => Keeper::Kernel,
        };
        keeper.check_rate(self.thread.is_invariant.get(), trusts_hypervisor)?;
        self.thread.world.detect(trusts_hypervisor)?;
        Ok(keeper)
    }

    fn stated_frequency(&self) -> Option<u64> {
        (!self.thread.is_x86()).then_some(self.thread.hertz)
    }
}

/// The clock, read in order or not, in a program that called `trust_hypervisor()` or not.
pub(super) struct Counter<const ORDERED: bool, const TRUSTING: bool>(CounterClock<Machine>);

pub(super) type Ordered = Counter<true, false>;
pub(super) type Unordered = Counter<false, false>;
pub(super) type Trusting = Counter<true, true>;

impl<const ORDERED: bool, const TRUSTING: bool> Clock for Counter<ORDERED, TRUSTING> {
    /// Reads until the counter was measured, or will not be used. A program need not wait for that:
    /// the vDSO answers meanwhile.
    fn start(thread: &Rc<Thread>) -> Self {
        let clock = CounterClock::new(Machine {
            thread: Rc::clone(thread),
        });
        if TRUSTING {
            assert!(clock.trust_hypervisor(), "the clock was not read yet");
        }
        for _ in 0..100_000 {
            let is_read = clock.slow_monotonic().is_some();
            if is_read && clock.state().status != Status::Calibrating {
                break;
            }
            thread.world.pass(MICRO);
        }
        Self(clock)
    }

    fn read(&self) -> u64 {
        let ticks = if ORDERED {
            Source::ticks_ordered
        } else {
            Source::ticks
        };
        if let Some(nanos) = self.0.monotonic(ticks) {
            return nanos;
        }
        self.0.slow_monotonic().expect("no sandbox denies it")
    }

    fn says(&self) -> String {
        self.0.state().status.to_string()
    }
}
