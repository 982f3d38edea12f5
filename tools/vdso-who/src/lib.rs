#![doc = include_str!("../README.md")]

#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("vdso-who is for Linux and Android on x86_64 and aarch64");

mod breakpoints;
mod callers;
mod clock_read;
mod guard;
mod mapping;
mod options;
mod perf;
mod proc;
mod report;
mod space;
mod target;
mod watch;

pub use options::{Options, Subject};
pub use report::{Report, wrapped};
pub use target::Target;
pub use watch::{Outcome, watch};

/// What is missing, and what to do.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

type Result<T, E = Error> = std::result::Result<T, E>;
