//! Proves where this process's clock reads are answered: in user space, by the vDSO, or in the
//! kernel.
//!
//! This is the library of the program `vdso-doctor`, which reports on a machine, checks reads for
//! scripts and health probes, and examines other processes: `cargo install vdso-doctor`. Its page
//! on [crates.io](https://crates.io/crates/vdso-doctor) shows what it prints.
//!
//! A vDSO that cannot read the kernel's clock source makes a system call itself, so the presence of
//! a vDSO proves nothing. [`diagnose`] calls each function, detects the system calls, measures the
//! costs, and says why a read enters the kernel and what to do.
//!
//! ```
//! let diagnosis = vdso_doctor::diagnose()?;
//! println!("{:?}: {}", diagnosis.cause, diagnosis.verdict);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`Diagnosis`] implements `serde::Serialize`, which gives the fields of `vdso-doctor --json`, and
//! `Display`, which gives the report of `vdso-doctor`.
//!
//! # In a server
//!
//! [`check`] tests whether the given reads stay in user space, but does not measure their costs.
//! Use it in a start-up check or in a health endpoint:
//!
//! ```
//! use vdso_time::ClockId;
//!
//! if let Err(finding) = vdso_doctor::check(&[ClockId::REALTIME, ClockId::MONOTONIC]) {
//!     eprintln!("slow clock: {finding}");
//! }
//! ```
//!
//! [`check`] and [`diagnose`] start a thread, which makes the reads and then ends. That thread
//! installs a seccomp filter for itself, blocks signals, and is moved to each CPU in turn. No other
//! thread of the process is changed.
//!
//! A sandbox that kills a process for `prctl`, `pipe2`, `ppoll`, `sched_setaffinity` or a clock
//! call kills the caller.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!("vdso-doctor is for Linux and Android");

mod call;
mod count;
mod cpus;
mod json;
mod own_vdso;
mod platform;
mod process;
mod process_report;
mod proof;
mod report;
mod seccomp;
mod sentence;
#[cfg(test)]
mod tests;
mod timing;
mod vdso_call;
mod verdict;

use std::time::Duration;
use std::{fmt, io, thread};

use vdso_time::LocateError;
use vdso_time::vdso::Vdso;
use vdso_time::{Routes, routes};

pub use call::Call;
use json::json;
pub use own_vdso::OwnVdso;
pub use platform::{ClockSource, Platform, Supervisor};
pub use process::{ProcessError, ProcessSymbol, ProcessVdso};
pub use process_report::ProcessDiagnosis;
use proof::{Check, worst_location};
pub use proof::{Evidence, Location, Measurement};
#[doc(hidden)]
pub use report::wrapped;
pub use vdso_time::Cause;

/// The result of [`diagnose`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The version of this format.
    pub format: u32,
    /// The kernel and its clock source.
    pub platform: Platform,
    /// The vDSO, or why there is none.
    pub vdso: Result<OwnVdso, LocateError>,
    /// What answers each function.
    pub routes: Routes,
    /// Why the vDSO's functions could not be tested, or not on every CPU. `None` if they were
    /// tested on every CPU, or if there was nothing to test: the process has no vDSO, or libc
    /// answers the calls.
    pub unproved: Option<String>,
    /// The CPUs on which the vDSO's functions were tested. Empty if no test was made, if other
    /// programs occupied every CPU, or if a sandbox did not allow the thread that made the calls to
    /// be moved from CPU to CPU.
    pub cpus: Vec<usize>,
    /// The calls, and what was found out about each.
    pub measurements: Vec<Measurement>,
    /// Why the calls are answered where they are.
    pub cause: Cause,
    /// The cause as a sentence that says what to do.
    pub verdict: String,
    /// The calls that the verdict is about.
    pub(crate) about: Vec<Call>,
}

json!(Diagnosis, |this|
    format, kernel: this.platform.kernel, architecture: this.platform.architecture,
    supervisor: this.platform.supervisor, clock_source: this.platform.clock_source,
    vdso: json::Located(&this.vdso), routes: json::Functions(&this.routes), unproved, cpus,
    measurements, cause: this.cause.name(), verdict
);

impl Diagnosis {
    /// Returns where these reads are answered.
    ///
    /// The result is [`Location::UserSpace`] only if each of the reads is known to stay in user
    /// space, [`Location::Kernel`] if at least one of them is known to enter the kernel, and
    /// otherwise [`Location::Unknown`]. A system call in an emulator or under valgrind counts as
    /// unknown, because it says nothing about the kernel's vDSO.
    #[must_use]
    pub fn location(&self, calls: &[Call]) -> Location {
        worst_location(&self.measurements, self.platform.supervisor, calls)
    }
}

/// Why [`check`] does not confirm that reads stay in user space.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// [`Location::Kernel`] if a read enters the kernel, [`Location::Unknown`] if nothing can be
    /// proved.
    pub location: Location,
    /// Why.
    pub cause: Cause,
    /// The cause as a sentence that says what to do.
    pub message: String,
}

json!(Finding, |finding| location, cause: finding.cause.name(), message);

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Finding {}

/// How many calls a check makes on each CPU.
const CALLS_OF_A_CHECK: u32 = 32;

/// How many calls a diagnosis makes on each CPU.
const CALLS_OF_A_DIAGNOSIS: u32 = 1000;

/// Checks that these reads stay in user space, now, on every CPU that the calling thread may use.
///
/// This function starts a thread, which makes 32 calls of each read on each CPU, one CPU after the
/// other. So it takes longer on a machine with more CPUs, and on a busy CPU the thread waits for
/// its turn. If threads with real-time priority occupy CPUs, this function stops waiting for those
/// CPUs after 5 to 10 s in total, plus 50 ms for each of them after the eighth. In the first five
/// seconds of a gVisor sandbox, it first waits for 1.5 s, because gVisor's kernel may still be
/// measuring the CPU's counter. In the first five seconds after a Linux kernel has started, it may
/// wait for the same time. The [crate's page](crate#in-a-server) describes the effects on the
/// process.
///
/// # Errors
/// A [`Finding`] if a read enters the kernel, or if nothing can be proved.
pub fn check<R: Copy + Into<Call>>(calls: &[R]) -> Result<(), Finding> {
    let about: Vec<Call> = calls.iter().map(|call| (*call).into()).collect();
    // The advice depends on these calls as well.
    let mut calls = about.clone();
    include(&mut calls, &Call::COARSE);
    include(&mut calls, &Call::USUAL);
    if !platform::is_counter_fatal() && !platform::may_be_new() {
        let check = Check::of(&calls, CALLS_OF_A_CHECK, false);
        // `worst_location` needs the supervisor, such as an emulator, only to judge reads that
        // enter the kernel. `UserSpace` is right under every supervisor, so none is looked for.
        if worst_location(&check.measurements, None, &about) == Location::UserSpace {
            return Ok(());
        }
        // If nothing can be proved, a second check would only wait again and fail for the same
        // reason.
        if check.unproved.is_some() {
            return Verdict::new(Platform::look(), check, &about).into_result();
        }
    }
    Verdict::of(&calls, &about, CALLS_OF_A_CHECK, false).into_result()
}

/// How long to wait until a kernel that has just started has chosen its clock source. gVisor takes
/// 0.9 to 1.2 s.
const SETTLING: Duration = Duration::from_millis(1500);

/// A check, and the verdict that follows from it: the location, the cause, and the cause as a
/// sentence. The check can include more calls than the verdict is about: [`check`] adds calls on
/// which the advice depends, and [`diagnose`] reports on all calls.
struct Verdict {
    platform: Platform,
    check: Check,
    location: Location,
    cause: Cause,
    sentence: String,
}

impl Verdict {
    /// Checks calls. A proof holds for one moment only, so the clock source must not change during
    /// the check. If the kernel has just started and may soon change its clock source, this
    /// function waits first. If the clock source changed during the check, or if the findings show
    /// that answers moved between user space and the kernel, this function checks once more.
    fn of(calls: &[Call], about: &[Call], on_each_cpu: u32, is_timed: bool) -> Self {
        let before = Platform::look();
        if platform::is_counter_fatal() {
            return Self {
                platform: before,
                check: Check::default(),
                location: Location::Unknown,
                cause: Cause::Refused,
                sentence: FATAL_COUNTER.into(),
            };
        }
        if before.is_settling() {
            thread::sleep(SETTLING);
        }
        let mut check = Check::of(calls, on_each_cpu, is_timed);
        let platform = Platform::look();
        let is_same_source = platform.clock_source.current == before.clock_source.current;
        if !is_same_source || check.is_of_two_states() {
            check = Check::of(calls, on_each_cpu, is_timed);
        }
        Self::new(platform, check, about)
    }

    fn new(platform: Platform, check: Check, about: &[Call]) -> Self {
        let location = worst_location(&check.measurements, platform.supervisor, about);
        let (cause, sentence) = verdict::verdict(&platform, &check, about);
        Self {
            platform,
            check,
            location,
            cause,
            sentence,
        }
    }

    fn into_result(self) -> Result<(), Finding> {
        if self.location == Location::UserSpace {
            return Ok(());
        }
        Err(Finding {
            location: self.location,
            cause: self.cause,
            message: self.sentence,
        })
    }
}

fn include(calls: &mut Vec<Call>, more: &[Call]) {
    for call in more {
        if !calls.contains(call) {
            calls.push(*call);
        }
    }
}

const FATAL_COUNTER: &str = "cannot read the clocks: reading the CPU's counter ends this process \
                             (PR_SET_TSC); use time() and the coarse clocks";

/// Diagnoses this process. The verdict is about [`Call::USUAL`].
///
/// A diagnosis makes 1000 calls of each read on each CPU, and then times each read for a few
/// milliseconds. In the first five seconds after a kernel has started, a diagnosis may take 1.5 s
/// more, as [`check`] may.
///
/// # Errors
/// If reading the CPU's counter ends this process (`PR_SET_TSC`).
pub fn diagnose() -> io::Result<Diagnosis> {
    diagnose_calls(&Call::USUAL)
}

/// Diagnoses this process. The verdict is about these calls.
///
/// # Errors
/// As [`diagnose`].
pub fn diagnose_calls(about: &[Call]) -> io::Result<Diagnosis> {
    if platform::is_counter_fatal() {
        return Err(io::Error::other(FATAL_COUNTER));
    }
    let mut calls = call::all();
    include(&mut calls, about);
    let verdict = Verdict::of(&calls, about, CALLS_OF_A_DIAGNOSIS, true);
    let vdso = match Vdso::locate() {
        Ok(vdso) => Ok(OwnVdso::of(&vdso)),
        Err(error) => Err(error),
    };
    Ok(Diagnosis {
        format: 1,
        platform: verdict.platform,
        vdso,
        routes: routes(),
        unproved: verdict.check.unproved,
        cpus: verdict.check.cpus,
        measurements: verdict.check.measurements,
        cause: verdict.cause,
        verdict: verdict.sentence,
        about: about.to_vec(),
    })
}
