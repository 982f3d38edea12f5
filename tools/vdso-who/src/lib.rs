#![doc = include_str!("../README.md")]

#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("vdso-who is for Linux and Android on x86_64 and aarch64");

mod breakpoints;
mod callers;
mod clock_read;
mod error;
mod flame_graph;
mod guard;
mod mapping;
mod options;
mod perf;
mod proc;
mod report;
mod shared;
mod space;
mod target;
mod text;
mod unit;
mod watch;

pub use error::Error;
pub use options::{GroupBy, Options, Subject};
pub use report::Report;
pub use target::Target;
#[doc(hidden)]
pub use text::wrapped;
pub use watch::{Outcome, Progress, watch};

use error::Result;
