//! Whether a read stays in user space, and how that is known.
//!
//! A route through the vDSO proves nothing: its functions make a system call themselves if they
//! cannot read the clock. So each function is called, and its system calls are detected.

use vdso_time::vdso::{Functions, Vdso};
use vdso_time::{ClockId, FallbackReason, Route, Routes, clock_getres, routes};

use crate::call::Call;
use crate::json::{json, kebab_case};
use crate::platform::Supervisor;
use crate::vdso_call::VdsoCall;
use crate::{seccomp, timing};

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
    /// That is not known.
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

/// How the place is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// Reads were made and their system calls were counted.
    Proved,
    /// The route says it: the crate makes the system call itself.
    Routed,
    /// The kernel or a sandbox refuses the read.
    Refused,
    /// libc answers: vdso-time has no table for this architecture.
    Libc,
    /// Nothing is known.
    None,
}

json!(Evidence, |evidence| kebab_case(evidence));

/// One read, and what was found out about it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Measurement {
    /// The read.
    pub call: Call,
    /// Where the read is answered.
    pub location: Location,
    /// How that is known.
    pub evidence: Evidence,
    /// How many calls were made for the proof.
    pub calls: Option<u32>,
    /// How many of them entered the kernel.
    pub entered: Option<u32>,
    /// Why the read was refused.
    pub error: Option<String>,
    /// The clock's resolution.
    pub resolution_ns: Option<i64>,
    /// The cost of a read through the crate.
    pub ns: Option<f64>,
    /// The cost of the system call.
    pub syscall_ns: Option<f64>,
    /// Why the crate makes the system call itself.
    pub(crate) reason: Option<FallbackReason>,
}

json!(Measurement, |measurement|
    function: measurement.call.function(), clock: measurement.call.clock().map(|clock| format!("{clock:?}")),
    clock_id: measurement.call.clock().map(ClockId::as_raw), location, evidence, calls, entered, error,
    resolution_ns, ns, syscall_ns
);

impl Measurement {
    pub(crate) fn new(read: Call) -> Self {
        Self {
            call: read,
            location: Location::Unknown,
            evidence: Evidence::None,
            calls: None,
            entered: None,
            error: None,
            resolution_ns: None,
            ns: None,
            syscall_ns: None,
            reason: None,
        }
    }

    /// Concludes from how many reads entered the kernel. One that did is a proof, but that none did
    /// is one only if every CPU was tried.
    fn prove(&mut self, calls: u32, entered: u32, is_every_cpu: bool) {
        (self.calls, self.entered) = (Some(calls), Some(entered));
        if entered != 0 {
            (self.location, self.evidence) = (Location::Kernel, Evidence::Proved);
        } else if is_every_cpu {
            (self.location, self.evidence) = (Location::UserSpace, Evidence::Proved);
        }
    }

    /// Returns the cost of a read as a share of the system call's.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.ns
            .zip(self.syscall_ns)
            .map(|(ns, syscall_ns)| ns / syscall_ns)
    }
}

/// What was found out about some reads.
#[derive(Default)]
pub(crate) struct Check {
    pub(crate) measurements: Vec<Measurement>,
    pub(crate) cpus: Vec<usize>,
    /// Why not every read could be proved.
    pub(crate) unproved: Option<String>,
}

impl Check {
    /// Examines reads, by so many calls on each CPU. Only the vDSO's can be proved.
    pub(crate) fn of(reads: &[Call], calls: u32, is_timed: bool) -> Self {
        let routes = routes();
        let mut this = Self::default();
        let mut entries = Vec::new();
        let vdso = Vdso::locate();
        let functions = vdso.map(|vdso| vdso.functions()).unwrap_or_default();
        for read in reads {
            let (measurement, entry) = examine(*read, &routes, &functions);
            entries.extend(entry.map(|entry| (this.measurements.len(), entry)));
            this.measurements.push(measurement);
        }
        // If libc answers, there is nothing to prove.
        if routes.time != Route::Libc && vdso.is_ok() {
            this.prove(&entries, calls);
        }
        if is_timed && timing::has_watch() {
            this.time(&routes);
        }
        this
    }

    /// Returns whether the kernel changed where it answers while it was examined: some reads of a
    /// clock entered it and some did not, or a read that entered it costs much less than the call.
    pub(crate) fn is_of_two_states(&self) -> bool {
        let is_mixed = |measurement: &Measurement| {
            measurement.entered != Some(0) && measurement.entered != measurement.calls
        };
        let is_cheap =
            |measurement: &Measurement| measurement.ratio().is_some_and(|ratio| ratio < 0.1);
        let proved = self
            .measurements
            .iter()
            .filter(|measurement| measurement.evidence == Evidence::Proved);
        let mut in_kernel = proved.filter(|measurement| measurement.location == Location::Kernel);
        in_kernel.any(|measurement| is_mixed(measurement) || is_cheap(measurement))
    }

    /// Counts the system calls of the functions of these measurements.
    fn prove(&mut self, entries: &[(usize, VdsoCall)], calls: u32) {
        let functions: Vec<_> = entries.iter().map(|(_, entry)| *entry).collect();
        let count = match seccomp::count(&functions, calls) {
            Ok(count) => count,
            Err(why) => {
                self.unproved = Some(why);
                return;
            }
        };
        if count.cpus.is_empty() {
            self.unproved = Some(
                "a sandbox denies sched_getaffinity(2) or sched_setaffinity(2), so not every CPU was tried"
                    .into(),
            );
        }
        for ((index, _), entered) in entries.iter().zip(count.entered) {
            self.measurements[*index].prove(count.reads, entered, self.unproved.is_none());
        }
        self.cpus = count.cpus;
    }

    /// Measures the costs, for the report.
    ///
    /// Where nothing could be proved, the doctor once concluded from the costs that a read likely
    /// stays in user space. The exit status was the one of an unknown location all the same, and the
    /// report shows the costs, so the doctor concludes nothing from them any more.
    fn time(&mut self, routes: &Routes) {
        let rounded = |value: f64| (value * 1e2).round() / 1e2;
        for measurement in &mut self.measurements {
            let speed = timing::speed(measurement.call);
            measurement.ns = speed.map(|speed| rounded(speed.here));
            // If libc answers, there is no system call of vdso-time to compare with.
            let is_ours = measurement.call.route(routes) != Route::Libc;
            let call = speed
                .and_then(|speed| speed.system_call)
                .filter(|_| is_ours);
            measurement.syscall_ns = call.map(rounded);
        }
    }
}

/// Returns the worst location of these reads. A system call in an emulator or under valgrind says
/// nothing about the kernel's vDSO.
pub(crate) fn worst_location(
    measurements: &[Measurement],
    supervisor: Option<Supervisor>,
    reads: &[Call],
) -> Location {
    let of = |read: &Call| {
        let measurement = measurements
            .iter()
            .find(|measurement| measurement.call == *read);
        match measurement.map(|measurement| (measurement.location, measurement.evidence)) {
            Some((Location::Kernel, _)) if supervisor.is_some_and(Supervisor::emulates) => {
                Location::Unknown
            }
            Some((location, Evidence::Proved | Evidence::Routed)) => location,
            _ => Location::Unknown,
        }
    };
    let locations: Vec<_> = reads.iter().map(of).collect();
    let worst = [Location::Kernel, Location::Unknown]
        .into_iter()
        .find(|location| locations.contains(location));
    worst.unwrap_or(Location::UserSpace)
}

/// Makes a read once. Returns the vDSO's function if it answered.
fn examine(read: Call, routes: &Routes, functions: &Functions) -> (Measurement, Option<VdsoCall>) {
    let mut seen = Measurement::new(read);
    let answer = read.make();
    if let (Call::ClockGettime(clock), Ok(())) = (read, answer) {
        seen.resolution_ns = clock_getres(clock)
            .ok()
            .map(|resolution| resolution.as_nanos() as i64);
    }
    (seen.location, seen.evidence) = match (read.route(routes), answer) {
        (Route::Libc, _) => (Location::Unknown, Evidence::Libc),
        (_, Err(error)) => {
            seen.error = Some(error.to_string());
            (Location::Kernel, Evidence::Refused)
        }
        (Route::Syscall { reason, .. }, Ok(())) => {
            seen.reason = Some(reason);
            (Location::Kernel, Evidence::Routed)
        }
        _ => return (seen, VdsoCall::of(read, functions)),
    };
    (seen, None)
}
