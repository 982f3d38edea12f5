//! What a breakpoint costs.

use std::process::id;
use std::thread::sleep;
use std::time::Duration;

use vdso_time::{ClockId, clock_gettime};

use crate::Result;
use crate::perf::{Event, Events, Trigger};
use crate::watch::{CLOSE, explain};

/// The time from one read that is counted to the next one, if nothing is between them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Trap {
    pub(crate) ns: u64,
    /// The range of the middle half of the measurements.
    pub(crate) spread: u64,
}

impl Trap {
    /// Counts reads of this program.
    pub(crate) fn measure() -> Result<Self> {
        let own = vdso_doctor::ProcessVdso::read(id())?;
        let symbol = own.symbols.iter().find(|symbol| symbol.name.ends_with("_clock_gettime"));
        let address = symbol.ok_or("the vDSO has no clock_gettime")?.range.start;
        let mut events =
            Events::open(id(), &Trigger::Execution(&[address])).map_err(|error| explain(&error))?;
        let mut gaps = Vec::new();
        // Some rounds, because another process may disturb one.
        for _ in 0..10 {
            events.enable_breakpoints();
            for _ in 0..200 {
                let _ = clock_gettime(ClockId::MONOTONIC);
            }
            events.disable_breakpoints();
            let records = events.drain().into_iter();
            let times = records.filter_map(|(time, event)| matches!(event, Event::Sample(_)).then_some(time));
            gaps.extend(times.collect::<Vec<_>>().windows(2).map(|pair| pair[1] - pair[0]));
            sleep(Duration::from_millis(1));
        }
        gaps.sort_unstable();
        if gaps.len() < 100 {
            return Err("breakpoints do not fire on this machine: omit --count and --exact".into());
        }
        let at = |quarter: usize| gaps[gaps.len() * quarter / 4];
        // One process differs from another by up to a third.
        Ok(Self { ns: at(2), spread: (at(3) - at(1)).max(at(2) / 3) })
    }

    /// Corrects it by a process's shortest times between two reads, if there are enough of them.
    pub(crate) fn correct(&mut self, gaps: &[u64]) {
        let mut short: Vec<_> = gaps.iter().copied().filter(|gap| *gap < self.ns + CLOSE).collect();
        if short.len() >= 100.max(gaps.len() / 20) {
            let middle = short.len() / 2;
            self.ns = self.ns.min(*short.select_nth_unstable(middle).1);
        }
    }
}
