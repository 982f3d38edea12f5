//! Shows which functions of an unmodified program read the clock.
//!
//! A clock read through the vDSO makes no system call, so `strace` and BPF probes of system calls
//! do not show it. This crate samples the program's threads with perf_event_open(2), keeps the
//! samples inside a clock read, and names the function that made the read.
//!
//! ```no_run
//! let options = vdso_who::Options::new(vdso_who::Subject::Process(4711));
//! let outcome = vdso_who::watch(&options, || false)?;
//! println!("{}", outcome.report);
//! # Ok::<(), vdso_who::Error>(())
//! ```
//!
//! [`Report`] implements `serde::Serialize`, with the fields of `vdso-who --json`, and `Display`,
//! as the report of `vdso-who`.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!("vdso-who is for Linux and Android");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("vdso-who is for x86_64 and aarch64");

mod entry;
mod guard;
mod options;
mod perf;
mod proc;
mod report;
mod stack;
mod tally;
mod target;
mod trap;
mod watch;

pub use options::{Options, Subject};
pub use report::{Report, wrapped};
pub use target::Target;
pub use watch::{Outcome, watch};

/// What is missing, and what to do.
pub type Error = Box<dyn std::error::Error>;

type Result<T, E = Error> = std::result::Result<T, E>;
