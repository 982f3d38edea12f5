//! Whether a read stays in user space, and how that is known.
//!
//! An address in the vDSO proves nothing: its functions make a system call themselves where they cannot read the clock.
//! So each is called, and every system call that comes of it is caught.

mod dispatch;
pub(crate) mod filter;
mod seccomp;

use std::io;

use vdso_time::{Errno, FallbackReason, Route, Routes};

use super::cpus::Cpus;
use super::read::{Entry, Read};
use super::timing::Speed;

/// How a system call is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Syscall User Dispatch, of Linux 5.11 on x86: a signal before the call is made.
    Dispatch,
    /// A seccomp filter in a child process, where every clock call fails with an error number of its own.
    Seccomp,
    /// The time that a read takes, against a system call's. No proof.
    Timing,
}

impl Method {
    pub(crate) const ALL: [Self; 3] = [Self::Dispatch, Self::Seccomp, Self::Timing];

    /// The best that there is here.
    pub(crate) fn best() -> Self {
        Self::ALL.into_iter().find(|method| method.check().is_ok()).unwrap_or(Self::Timing)
    }

    /// As it is written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Seccomp => "seccomp",
            Self::Timing => "timing",
        }
    }

    /// Whether the method notices a system call that is known to be made.
    pub(crate) fn check(self) -> io::Result<()> {
        match self {
            Self::Dispatch => dispatch::check(),
            Self::Seccomp => seccomp::check(),
            Self::Timing => Ok(()),
        }
    }
}

/// Where a read is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    UserSpace,
    Kernel,
    Unknown,
}

/// How sure that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// So many reads were made, and so many of them entered the kernel.
    Proved(Count),
    /// No function of the vDSO is called: the crate makes the system call itself, and why.
    Routed(FallbackReason),
    /// Nobody answers this read.
    Refused(Errno),
    /// It takes as long as such reads do.
    Likely,
    /// It is libc's affair: this architecture has no table.
    Libc,
    /// Nothing tells.
    None,
}

/// Reads, and system calls that came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) reads: u32,
    pub(crate) entered: u32,
    /// Those of them that were made elsewhere than in the vDSO, as far as the method can tell.
    pub(crate) outside: u32,
    /// The number of the last, if the method can tell.
    pub(crate) syscall: Option<i32>,
}

/// Reads on each CPU.
pub(crate) const READS: u32 = 1000;

/// Where a read is answered, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) place: Place,
    pub(crate) evidence: Evidence,
}

/// What it takes to find out.
pub(crate) struct Prover<'a> {
    /// None if there is nothing to find out.
    pub(crate) method: Option<Method>,
    pub(crate) routes: &'a Routes,
    /// None if this thread cannot be moved.
    pub(crate) cpus: Option<Cpus>,
    /// Nanoseconds that the cheapest way into the kernel takes; none where time says nothing, under an emulator.
    pub(crate) kernel_entry: Option<f64>,
}

impl Prover<'_> {
    /// Finds out where a read is answered. What it costs says it where nothing better does.
    pub(crate) fn prove(&self, read: Read, speed: Option<Speed>) -> Finding {
        let found = |place, evidence| Finding { place, evidence };
        match *read.route(self.routes) {
            Route::Libc => return found(Place::Unknown, Evidence::Libc),
            Route::Syscall { reason, .. } if read.make().is_ok() => {
                return found(Place::Kernel, Evidence::Routed(reason));
            }
            _ => {}
        }
        if let Err(error) = read.make() {
            return found(Place::Kernel, Evidence::Refused(error));
        }
        let count = read.entry(self.routes).and_then(|entry| match self.method {
            Some(Method::Dispatch) => dispatch::count(entry, self.cpus.as_ref()).ok(),
            Some(Method::Seccomp) => seccomp::count(entry, self.cpus.as_ref()).ok(),
            Some(Method::Timing) | None => None,
        });
        match count {
            Some(count) if count.entered == 0 => found(Place::UserSpace, Evidence::Proved(count)),
            Some(count) => found(Place::Kernel, Evidence::Proved(count)),
            None => match (speed, self.kernel_entry) {
                // A vDSO that enters the kernel costs as much as another way into it, or more.
                (Some(speed), Some(entry)) if speed.here < 0.4 * entry => {
                    found(Place::UserSpace, Evidence::Likely)
                }
                (Some(speed), Some(entry)) if speed.here > 0.8 * entry => {
                    found(Place::Kernel, Evidence::Likely)
                }
                _ => found(Place::Unknown, Evidence::None),
            },
        }
    }
}

/// Makes the reads on each CPU in turn, or wherever the thread is if it cannot be moved. `entered` makes one, and says whether
/// it entered the kernel.
fn on_each_cpu(
    entry: Entry,
    cpus: Option<&Cpus>,
    mut entered: impl FnMut(Entry) -> bool,
) -> io::Result<Count> {
    let mut count = Count::default();
    let mut on_this = || {
        for _ in 0..READS {
            count.reads += 1;
            count.entered += u32::from(entered(entry));
        }
    };
    match cpus {
        None => on_this(),
        Some(cpus) => {
            // One that has gone offline meanwhile reads no clock.
            cpus.numbers().into_iter().filter(|cpu| cpus.pin(*cpu).is_ok()).for_each(|_| on_this());
            cpus.release();
        }
    }
    if count.reads == 0 { Err(io::ErrorKind::NotFound.into()) } else { Ok(count) }
}
