//! Whether a read stays in user space, and how that is known.
//!
//! A route through the vDSO proves nothing, because the vDSO's functions make a system call
//! themselves if they cannot read the clock. So each function is called, and its system calls are
//! detected.

use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, FallbackReason, Route, Routes, clock_getres, routes};

use crate::call::Call;
use crate::count::{self, Count};
use crate::json::json;
use crate::platform::Supervisor;
use crate::vdso_call::VdsoCall;
use crate::{cpus, timing};

#[cfg(test)]
pub(crate) mod tests;

/// Where a read is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// In user space.
    UserSpace,
    /// In the kernel: it makes a system call.
    Kernel,
    /// It is not known where.
    Unknown,
}

json!(Location, |location| location.name());

impl Location {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::UserSpace => "user space",
            Self::Kernel => "kernel",
            Self::Unknown => "unknown",
        }
    }
}

/// How the location is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// Reads were made and their system calls were counted.
    Proved,
    /// The route shows it: the crate makes the system call itself.
    Routed,
    /// The kernel or a sandbox refuses the read.
    Refused,
    /// libc answers: vdso-time has no table for this architecture.
    Libc,
    /// Nothing is known.
    None,
}

json!(Evidence, |evidence| evidence.name());

impl Evidence {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Routed => "routed",
            Self::Refused => "refused",
            Self::Libc => "libc",
            Self::None => "none",
        }
    }
}

/// One call, and what was found out about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Measurement {
    /// The call.
    pub call: Call,
    /// Where the call is answered.
    pub location: Location,
    /// How the location is known.
    pub evidence: Evidence,
    /// How many calls were made for the proof.
    pub calls: Option<u32>,
    /// How many of them entered the kernel.
    pub entered: Option<u32>,
    /// The error, if the call failed.
    pub error: Option<String>,
    /// The clock's resolution, as clock_getres(2) states it.
    pub resolution_ns: Option<i64>,
    /// The smallest step that the clock was seen to make. If the clock's steps are shorter than a
    /// read, this is about the duration of a read.
    pub step_ns: Option<i64>,
    /// The cost of a read through vdso-time, in nanoseconds.
    pub ns: Option<f64>,
    /// The cost of the system call, in nanoseconds.
    pub syscall_ns: Option<f64>,
    /// Why the crate makes the system call itself.
    pub(crate) reason: Option<FallbackReason>,
}

json!(Measurement, |measurement|
    function: measurement.call.function(), clock: measurement.call.clock().map(|clock| clock.to_string()),
    clock_id: measurement.call.clock().map(ClockId::as_raw), location, evidence, calls, entered, error,
    resolution_ns, step_ns, ns, syscall_ns
);

impl Measurement {
    pub(crate) fn new(call: Call) -> Self {
        Self {
            call,
            location: Location::Unknown,
            evidence: Evidence::None,
            calls: None,
            entered: None,
            error: None,
            resolution_ns: None,
            step_ns: None,
            ns: None,
            syscall_ns: None,
            reason: None,
        }
    }

    /// Concludes the location from how many calls entered the kernel. If at least one call did,
    /// [`Location::Kernel`] is proved. If no call did, [`Location::UserSpace`] is proved only if
    /// every CPU was tested.
    fn prove(&mut self, calls: u32, entered: u32, is_every_cpu: bool) {
        self.calls = Some(calls);
        self.entered = Some(entered);
        if entered != 0 {
            self.location = Location::Kernel;
            self.evidence = Evidence::Proved;
        } else if is_every_cpu {
            self.location = Location::UserSpace;
            self.evidence = Evidence::Proved;
        }
    }

    /// Returns the location, or [`Location::Unknown`] if the evidence does not show it.
    fn known_location(&self, supervisor: Option<Supervisor>) -> Location {
        let is_known = matches!(self.evidence, Evidence::Proved | Evidence::Routed);
        let is_emulated = supervisor.is_some_and(Supervisor::emulates);
        if !is_known || (self.location == Location::Kernel && is_emulated) {
            return Location::Unknown;
        }
        self.location
    }

    /// Returns the cost of a read divided by the cost of the system call.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.ns? / self.syscall_ns?)
    }
}

/// The findings about some calls.
#[derive(Default)]
pub(crate) struct Check {
    pub(crate) measurements: Vec<Measurement>,
    pub(crate) cpus: Vec<usize>,
    /// Why the vDSO's functions could not be tested, or not on every CPU.
    pub(crate) unproved: Option<String>,
}

impl Check {
    /// Checks where each call is answered. First, each call is made once. Only a call that the vDSO
    /// answers needs a proof: such a call is then made `on_each_cpu` times on each CPU, and its
    /// system calls are counted.
    pub(crate) fn of(calls: &[Call], on_each_cpu: u32, is_timed: bool) -> Self {
        let routes = routes();
        let vdso = Vdso::locate();
        let functions = vdso.map(|vdso| vdso.functions()).unwrap_or_default();
        let mut check = Self::default();
        let mut provable = Vec::new();
        for call in calls {
            let measurement = measure_once(*call, &routes);
            if measurement.evidence == Evidence::None {
                if let Some(function) = VdsoCall::of(*call, &functions) {
                    provable.push((check.measurements.len(), function));
                }
            }
            check.measurements.push(measurement);
        }
        // If libc answers, there is nothing to prove.
        if routes.time != Route::Libc && vdso.is_ok() {
            check.prove(&provable, on_each_cpu);
        }
        if is_timed && timing::has_watch() {
            check.time(&routes);
        }
        check
    }

    /// Returns whether the answers moved between the kernel and user space during the check: some
    /// calls for a clock entered the kernel and some did not, or a read that entered the kernel
    /// costs much less than the system call.
    pub(crate) fn is_of_two_states(&self) -> bool {
        for measurement in &self.measurements {
            let is_proved = measurement.evidence == Evidence::Proved;
            if !is_proved || measurement.location != Location::Kernel {
                continue;
            }
            let is_mixed = measurement.entered != measurement.calls;
            if is_mixed || measurement.ratio().is_some_and(|ratio| ratio < 0.1) {
                return true;
            }
        }
        false
    }

    /// Counts the system calls of these functions, and concludes the locations. Each function comes
    /// with the index of its measurement.
    fn prove(&mut self, provable: &[(usize, VdsoCall)], on_each_cpu: u32) {
        let functions: Vec<VdsoCall> = provable.iter().map(|(_, function)| *function).collect();
        let count = match count::count(&functions, on_each_cpu, count::PATIENCE) {
            Ok(count) => count,
            Err(why) => {
                self.unproved = Some(why);
                return;
            }
        };
        if !count.busy.is_empty() {
            self.unproved = Some(busy(&count));
        } else if count.cpus.is_empty() {
            self.unproved = Some(
                "a sandbox denies sched_getaffinity(2) or sched_setaffinity(2), so not every CPU was tested"
                    .into(),
            );
        }
        for ((index, _), entered) in provable.iter().zip(count.entered) {
            self.measurements[*index].prove(count.calls, entered, self.unproved.is_none());
        }
        self.cpus = count.cpus;
    }

    /// Measures the costs, for the report.
    ///
    /// In an earlier version, if nothing could be proved, the doctor concluded from the costs that
    /// a read likely stays in user space. But the exit status was still the one for an unknown
    /// location, and the report shows the costs anyway. So now the doctor concludes nothing from
    /// the costs.
    fn time(&mut self, routes: &Routes) {
        let rounded = |value: f64| (value * 1e2).round() / 1e2;
        for measurement in &mut self.measurements {
            if let Call::ClockGettime(clock) = measurement.call {
                measurement.step_ns = timing::step(clock);
            }
            let Some(speed) = timing::speed(measurement.call) else {
                continue;
            };
            measurement.ns = Some(rounded(speed.here));
            // If libc answers, there is no system call of vdso-time to compare with.
            if measurement.call.route(routes) != Route::Libc {
                measurement.syscall_ns = speed.system_call.map(rounded);
            }
        }
    }
}

/// Returns a text that says which CPUs could not be tested, and how to leave them out.
fn busy(count: &Count) -> String {
    let others = cpus::list(&count.busy);
    let (what, them) = match count.busy.len() {
        1 => ("CPU", "it"),
        _ => ("CPUs", "them"),
    };
    let advice = if count.cpus.is_empty() {
        String::new()
    } else {
        let rest = cpus::list(&count.cpus);
        format!(". To leave {them} out, run `taskset -c {rest} vdso-doctor`")
    };
    format!(
        "{what} {others} could not be tested, because a program with real-time priority seems to occupy \
         {them}{advice}"
    )
}

/// Returns the worst location of these calls. The kernel is worse than an unknown location, which
/// is worse than user space. A system call in an emulator or under valgrind counts as unknown,
/// because it says nothing about the kernel's vDSO.
pub(crate) fn worst_location(
    measurements: &[Measurement],
    supervisor: Option<Supervisor>,
    calls: &[Call],
) -> Location {
    let mut worst = Location::UserSpace;
    for call in calls {
        let known = measurements.iter().find(|known| known.call == *call);
        match known.map_or(Location::Unknown, |known| known.known_location(supervisor)) {
            Location::Kernel => return Location::Kernel,
            Location::Unknown => worst = Location::Unknown,
            Location::UserSpace => {}
        }
    }
    worst
}

/// Makes a call once, and concludes the call's location from its route and its result. If the route
/// leads to the vDSO and the call succeeds, there is no evidence yet.
fn measure_once(call: Call, routes: &Routes) -> Measurement {
    let mut measurement = Measurement::new(call);
    let answer = call.make();
    if let (Call::ClockGettime(clock), Ok(())) = (call, answer) {
        if let Ok(resolution) = clock_getres(clock) {
            measurement.resolution_ns = Some(resolution.as_nanos() as i64);
        }
    }
    let route = call.route(routes);
    if route == Route::Libc {
        measurement.evidence = Evidence::Libc;
    } else if let Err(error) = answer {
        measurement.error = Some(error.to_string());
        measurement.location = Location::Kernel;
        measurement.evidence = Evidence::Refused;
    } else if let Route::Syscall { reason, .. } = route {
        measurement.reason = Some(reason);
        measurement.location = Location::Kernel;
        measurement.evidence = Evidence::Routed;
    }
    measurement
}
