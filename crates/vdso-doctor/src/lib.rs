//! Proves whether this process reads its clocks in user space, through the vDSO, or in the kernel.
//!
//! A vDSO that cannot read the kernel's clock source makes a system call itself, so its address
//! proves nothing. [`diagnose`] calls each function, detects the system calls, measures the costs,
//! and says why a read enters the kernel and what to do.
//!
//! ```
//! let diagnosis = vdso_doctor::diagnose()?;
//! println!("{:?}: {}", diagnosis.cause, diagnosis.verdict);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`Diagnosis`] implements `serde::Serialize`, with the fields of `vdso-doctor --json`, and
//! `Display`, as the report of `vdso-doctor`.
//!
//! # In a server
//!
//! A diagnosis takes about a second. Until it is done:
//!
//! - the calling thread runs on each of its CPUs in turn, if a sandbox allows this;
//! - short-lived threads have a seccomp filter, if a sandbox allows this.
//!
//! A sandbox that kills for `prctl`, `sched_setaffinity` or a clock call kills the process.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!("vdso-doctor is for Linux and Android");

mod cpus;
mod image;
mod json;
mod machine;
mod proof;
mod read;
mod report;
#[cfg(test)]
mod tests;
mod timing;
mod verdict;

use std::io;

use serde::Serialize;
use vdso_time::vdso::{LocateError, Vdso};
use vdso_time::{Route, Routes, routes};

use cpus::Cpus;
pub use image::Image;
pub use machine::{ClockSource, Machine, Supervisor};
use proof::Prover;
pub use proof::{Evidence, Method, Place, Reading};
pub use read::Read;
pub use verdict::Cause;

/// Everything that was found out.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The version of this format.
    pub format: u32,
    /// The kernel and its clock source.
    #[serde(flatten)]
    pub machine: Machine,
    /// The vDSO, or why there is none.
    #[serde(serialize_with = "json::image")]
    pub vdso: Result<Image, LocateError>,
    /// Who answers each function.
    #[serde(serialize_with = "json::routes")]
    pub routes: Routes,
    /// How system calls were detected; `None` without a vDSO.
    pub method: Option<Method>,
    /// The CPUs on which the reads were made; empty if the thread could not be moved.
    pub cpus: Vec<usize>,
    /// The reads.
    pub reads: Vec<Reading>,
    /// Why the reads are answered where they are.
    pub cause: Cause,
    /// The cause as a sentence that says what to do.
    pub verdict: String,
}

impl Diagnosis {
    /// Returns where these reads are answered.
    ///
    /// It is [`Place::UserSpace`] only if proof or the route shows it for each of them, and
    /// [`Place::Kernel`] if that is known for one. What an emulator does is [`Place::Unknown`].
    ///
    /// ```
    /// use vdso_doctor::{Place, Read};
    ///
    /// let diagnosis = vdso_doctor::diagnose()?;
    /// if diagnosis.place(&Read::USUAL) == Place::Kernel {
    ///     eprintln!("{}", diagnosis.verdict);
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn place(&self, reads: &[Read]) -> Place {
        let is_emulated = self.machine.supervisor == Some(Supervisor::Emulator);
        let of = |read: &Read| {
            let reading = self.reads.iter().find(|reading| reading.read == *read);
            match reading.map(|reading| (reading.place, reading.evidence)) {
                Some((Place::UserSpace, Evidence::Proved | Evidence::Routed)) => Place::UserSpace,
                Some((Place::Kernel, Evidence::Proved | Evidence::Routed)) if !is_emulated => Place::Kernel,
                _ => Place::Unknown,
            }
        };
        let places: Vec<_> = reads.iter().map(of).collect();
        let worst = [Place::Kernel, Place::Unknown].into_iter().find(|place| places.contains(place));
        worst.unwrap_or(Place::UserSpace)
    }
}

/// Diagnoses this process. The verdict is about [`Read::USUAL`].
///
/// # Errors
/// If reading the CPU's counter ends this process (`PR_SET_TSC`).
pub fn diagnose() -> io::Result<Diagnosis> {
    diagnose_reads(&Read::USUAL)
}

/// Diagnoses this process. The verdict is about these reads.
///
/// # Errors
/// As [`diagnose`].
pub fn diagnose_reads(about: &[Read]) -> io::Result<Diagnosis> {
    if machine::is_counter_fatal() {
        return Err(io::Error::other(
            "cannot read the clocks: reading the CPU's counter ends this process (PR_SET_TSC); use time() and \
             the coarse clocks",
        ));
    }
    let vdso = Vdso::locate();
    let routes = routes();
    // Without a vDSO, or if libc answers, there is nothing to prove.
    let is_provable = vdso.is_ok() && routes.time != Route::Libc;
    let method = is_provable.then(Method::best);
    let machine = Machine::look(vdso.as_ref().ok());
    let has_watch = timing::has_watch();
    let is_timed = has_watch && !machine.supervisor.is_some_and(Supervisor::emulates);
    let kernel_entry = if is_timed { timing::kernel_entry() } else { None };
    let prover = Prover { method, routes: &routes, cpus: Cpus::movable(), has_watch, kernel_entry };
    let mut reads = read::all();
    for read in about {
        if !reads.contains(read) {
            reads.push(*read);
        }
    }
    let reads: Vec<_> = reads.into_iter().map(|read| prover.examine(read)).collect();
    let (cause, verdict) = verdict::verdict(&machine, &reads, about);
    let cpus = prover.cpus.as_ref().map_or(Vec::new(), |cpus| cpus.numbers().to_vec());
    let vdso = vdso.as_ref().map(Image::of).map_err(|error| *error);
    Ok(Diagnosis { format: 1, machine, vdso, routes, method, cpus, reads, cause, verdict })
}
