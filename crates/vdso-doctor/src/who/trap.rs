//! What a breakpoint costs.

use std::process::id;

use vdso_time::{ClockId, clock_gettime};

use super::perf::{Event, Events, Trigger};
use super::{Result, explain};

/// The time from one read that is counted to the next one, if nothing is between them.
#[derive(Clone, Copy, Default)]
pub(super) struct Trap {
    pub(super) ns: u64,
    /// The range of the middle half of the measurements.
    pub(super) spread: u64,
}

impl Trap {
    /// Counts reads of this program.
    pub(super) fn measure() -> Result<Self> {
        let own = vdso_doctor::ProcessVdso::read(id())?;
        let symbol = own.symbols.iter().find(|symbol| symbol.name.ends_with("_clock_gettime"));
        let address = symbol.ok_or("the vDSO has no clock_gettime")?.range.start;
        let mut events =
            Events::open(id(), &Trigger::Execution(&[address])).map_err(|error| explain(&error))?;
        events.enable_breakpoints();
        for _ in 0..400 {
            let _ = clock_gettime(ClockId::MONOTONIC);
        }
        events.disable_breakpoints();
        let times: Vec<_> =
            events.drain().into_iter().filter(|(_, event)| matches!(event, Event::Sample(_))).collect();
        let mut gaps: Vec<_> = times.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        gaps.sort_unstable();
        if gaps.len() < 100 {
            return Err("breakpoints do not fire on this machine: omit --count and --exact".into());
        }
        let at = |quarter: usize| gaps[gaps.len() * quarter / 4];
        Ok(Self { ns: at(2), spread: at(3) - at(1) })
    }
}
