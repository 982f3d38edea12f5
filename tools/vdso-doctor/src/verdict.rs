//! The reason why calls are answered where they are.
//!
//! A verdict is about some calls, and uses the findings about all calls. For example, on a machine
//! that was booted with `clocksource=hpet`:
//!
//! ```text
//! about                          CLOCK_REALTIME, CLOCK_MONOTONIC
//! clock sources                  hpet, tsc (the first is in use)
//! 1000 calls of each on 2 CPUs   CLOCK_REALTIME and CLOCK_MONOTONIC: 2000 entered the kernel
//!                                CLOCK_MONOTONIC_COARSE, time(): none
//!
//! 1. the worst call              CLOCK_REALTIME, the first one that is known to enter the kernel
//! 2. its evidence                proved, by each of its calls: the function exists but always asks
//! 3. the other clocks            CLOCK_MONOTONIC enters as well, so the clock source is the reason
//! 4. the clock source            only the kernel reads hpet, and tsc is available
//! 5. the verdict                 Cause::ClockSource: "To fix it now, run ... `echo tsc | ...`"
//! ```

use vdso_time::{Cause, ClockId};

use crate::call::Call;
use crate::platform::{Platform, Supervisor};
use crate::proof::{Check, Evidence, Location, Measurement};

#[cfg(test)]
mod tests;

const MONOTONIC: Call = Call::ClockGettime(ClockId::MONOTONIC);

/// A read that takes more than this share of a system call's time is slow.
const SLOW: f64 = 0.8;

/// Returns the cause and the sentences for these calls.
pub(crate) fn verdict(platform: &Platform, check: &Check, about: &[Call]) -> (Cause, String) {
    if about.is_empty() {
        return (Cause::Fine, "no read was named.".into());
    }
    let facts = Facts { platform, check };
    if let Some(worst) = facts.worst(about) {
        let cause = facts.cause(worst);
        return (cause, facts.sentences(cause, worst));
    }
    for call in about {
        let Some(measurement) = facts.measurement(*call) else {
            continue;
        };
        if measurement.ratio().is_some_and(|ratio| ratio > SLOW) {
            return (Cause::Slow, facts.sentences(Cause::Slow, measurement));
        }
    }
    (Cause::Fine, fine(about))
}

fn fine(about: &[Call]) -> String {
    let names: Vec<String> = about.iter().map(Call::to_string).collect();
    match &*names {
        [] => String::new(),
        [one] => format!("{one} stays in user space: nothing to do."),
        [others @ .., last] => {
            let others = others.join(", ");
            format!("{others} and {last} stay in user space: nothing to do.")
        }
    }
}

/// The facts from which the cause and the sentences follow.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) platform: &'a Platform,
    pub(crate) check: &'a Check,
}

impl<'a> Facts<'a> {
    pub(crate) fn measurement(self, call: Call) -> Option<&'a Measurement> {
        let mut measurements = self.check.measurements.iter();
        measurements.find(|measurement| measurement.call == call)
    }

    pub(crate) fn is_in_user_space(self, call: Call) -> bool {
        match self.measurement(call) {
            Some(measurement) => measurement.location == Location::UserSpace,
            None => false,
        }
    }

    /// Returns the call that a user has to know about: the first one that enters the kernel,
    /// otherwise the first one that failed, otherwise the first one whose location is unknown.
    /// Returns `None` if all stay in user space.
    fn worst(self, about: &[Call]) -> Option<&'a Measurement> {
        let badness = |measurement: &Measurement| match measurement.location {
            Location::UserSpace => 0,
            Location::Unknown => 1,
            // A call that enters the kernel is worse than a call that failed, because the reason
            // for a failure, such as a sandbox, does not explain where the other calls are
            // answered.
            Location::Kernel if measurement.evidence == Evidence::Refused => 2,
            Location::Kernel => 3,
        };
        let mut worst: Option<&Measurement> = None;
        for call in about {
            let Some(measurement) = self.measurement(*call) else {
                continue;
            };
            if badness(measurement) > worst.map_or(0, badness) {
                worst = Some(measurement);
            }
        }
        worst
    }

    /// Returns why one call enters the kernel, or may enter it.
    fn cause(self, measurement: &Measurement) -> Cause {
        let supervisor = self.platform.supervisor;
        if measurement.evidence == Evidence::Refused {
            return Cause::Refused;
        }
        if supervisor.is_some_and(Supervisor::emulates) {
            return Cause::Emulated;
        }
        if let Some(reason) = measurement.reason {
            return reason.into();
        }
        if matches!(measurement.evidence, Evidence::Libc | Evidence::None) {
            return Cause::CannotTell;
        }
        if measurement.call.is_in_no_vdso() {
            return Cause::ClockNotServed;
        }
        if self.platform.is_settling() {
            return Cause::NotYet;
        }
        if measurement.entered < measurement.calls {
            return Cause::Sometimes;
        }
        // If the vDSO reads `CLOCK_MONOTONIC` in user space, it can read the clock source. So
        // `measurement.call` enters the kernel for another reason: the vDSO does not read the clock
        // of this call.
        if self.is_in_user_space(MONOTONIC) {
            return Cause::ClockNotServed;
        }
        // Under gVisor, WSL 1 and user-mode Linux, the clock source and the CPU's flags explain
        // nothing: they describe the kernel underneath, or do not mean what they mean in Linux.
        if supervisor.is_some() {
            return Cause::GuestKernel;
        }
        if !measurement.call.reads_clock_source() {
            return Cause::ClockNotServed;
        }
        let sources = &self.platform.clock_source;
        Cause::of_clock_source(
            self.platform.architecture,
            sources.current.as_deref().unwrap_or_default(),
            &sources.available.join(" "),
        )
    }
}
