//! Whether a read stays in user space, and how that is known.
//!
//! A route through the vDSO proves nothing: its functions make a system call themselves if they
//! cannot read the clock. So each function is called, and its system calls are detected.

use vdso_time::vdso::{Functions, Vdso};
use vdso_time::{ClockId, FallbackReason, Route, Routes, clock_getres, routes};

use crate::function::Function;
use crate::json::{json, kebab_case};
use crate::platform::Supervisor;
use crate::read::Read;
use crate::{seccomp, timing};

#[cfg(test)]
pub(crate) mod tests;

/// Where a read is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// In user space.
    UserSpace,
    /// In the kernel: it makes a system call.
    Kernel,
    /// That is not known.
    Unknown,
}

json!(Place, |place| place.name());

impl Place {
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
pub struct Reading {
    /// The read.
    pub read: Read,
    /// Where the read is answered.
    pub place: Place,
    /// How that is known.
    pub evidence: Evidence,
    /// How many reads were made for the proof.
    pub reads: Option<u32>,
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

json!(Reading, |reading|
    function: reading.read.function(), clock: reading.read.clock().map(|clock| format!("{clock:?}")),
    clock_id: reading.read.clock().map(ClockId::as_raw), place, evidence, reads, entered, error,
    resolution_ns, ns, syscall_ns
);

impl Reading {
    pub(crate) fn new(read: Read) -> Self {
        Self {
            read,
            place: Place::Unknown,
            evidence: Evidence::None,
            reads: None,
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
    fn prove(&mut self, reads: u32, entered: u32, is_every_cpu: bool) {
        (self.reads, self.entered) = (Some(reads), Some(entered));
        if entered != 0 {
            (self.place, self.evidence) = (Place::Kernel, Evidence::Proved);
        } else if is_every_cpu {
            (self.place, self.evidence) = (Place::UserSpace, Evidence::Proved);
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
pub(crate) struct Examination {
    pub(crate) readings: Vec<Reading>,
    pub(crate) cpus: Vec<usize>,
    /// Why not every read could be proved.
    pub(crate) unproved: Option<String>,
}

impl Examination {
    /// Examines reads, by so many calls on each CPU. Only the vDSO's can be proved.
    pub(crate) fn of(reads: &[Read], calls: u32, is_timed: bool) -> Self {
        let routes = routes();
        let mut this = Self::default();
        let mut entries = Vec::new();
        let vdso = Vdso::locate();
        let functions = vdso.map(|vdso| vdso.functions()).unwrap_or_default();
        for read in reads {
            let (reading, entry) = examine(*read, &routes, &functions);
            entries.extend(entry.map(|entry| (this.readings.len(), entry)));
            this.readings.push(reading);
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
        let is_mixed =
            |reading: &Reading| reading.entered != Some(0) && reading.entered != reading.reads;
        let is_cheap = |reading: &Reading| reading.ratio().is_some_and(|ratio| ratio < 0.1);
        let proved = self
            .readings
            .iter()
            .filter(|reading| reading.evidence == Evidence::Proved);
        let mut in_kernel = proved.filter(|reading| reading.place == Place::Kernel);
        in_kernel.any(|reading| is_mixed(reading) || is_cheap(reading))
    }

    /// Counts the system calls of the functions of these readings.
    fn prove(&mut self, entries: &[(usize, Function)], calls: u32) {
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
            self.readings[*index].prove(count.reads, entered, self.unproved.is_none());
        }
        self.cpus = count.cpus;
    }

    /// Measures the costs, for the report.
    ///
    /// Where nothing could be proved, the doctor once concluded from the costs that a read likely
    /// stays in user space. The exit status was that of an unknown place all the same, and whoever
    /// reads the report sees the costs, so it concludes nothing any more.
    fn time(&mut self, routes: &Routes) {
        let rounded = |value: f64| (value * 1e2).round() / 1e2;
        for reading in &mut self.readings {
            let speed = timing::speed(reading.read);
            reading.ns = speed.map(|speed| rounded(speed.here));
            // If libc answers, there is no system call of vdso-time to compare with.
            let is_ours = reading.read.route(routes) != Route::Libc;
            let call = speed
                .and_then(|speed| speed.system_call)
                .filter(|_| is_ours);
            reading.syscall_ns = call.map(rounded);
        }
    }
}

/// Returns the worst place of these reads. A system call in an emulator or under valgrind says
/// nothing about the kernel's vDSO.
pub(crate) fn worst_place(
    readings: &[Reading],
    supervisor: Option<Supervisor>,
    reads: &[Read],
) -> Place {
    let of = |read: &Read| {
        let reading = readings.iter().find(|reading| reading.read == *read);
        match reading.map(|reading| (reading.place, reading.evidence)) {
            Some((Place::Kernel, _)) if supervisor.is_some_and(Supervisor::emulates) => {
                Place::Unknown
            }
            Some((place, Evidence::Proved | Evidence::Routed)) => place,
            _ => Place::Unknown,
        }
    };
    let places: Vec<_> = reads.iter().map(of).collect();
    let worst = [Place::Kernel, Place::Unknown]
        .into_iter()
        .find(|place| places.contains(place));
    worst.unwrap_or(Place::UserSpace)
}

/// Makes a read once. Returns the vDSO's function if it answered.
fn examine(read: Read, routes: &Routes, functions: &Functions) -> (Reading, Option<Function>) {
    let mut seen = Reading::new(read);
    let answer = read.make();
    if let (Read::ClockGettime(clock), Ok(())) = (read, answer) {
        seen.resolution_ns = clock_getres(clock)
            .ok()
            .map(|resolution| resolution.as_nanos() as i64);
    }
    (seen.place, seen.evidence) = match (read.route(routes), answer) {
        (Route::Libc, _) => (Place::Unknown, Evidence::Libc),
        (_, Err(error)) => {
            seen.error = Some(error.to_string());
            (Place::Kernel, Evidence::Refused)
        }
        (Route::Syscall { reason, .. }, Ok(())) => {
            seen.reason = Some(reason);
            (Place::Kernel, Evidence::Routed)
        }
        _ => return (seen, Function::of(read, functions)),
    };
    (seen, None)
}
