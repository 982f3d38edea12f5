//! Code that the tests share: oracles, child processes, signals and sandboxes.

#![allow(unsafe_code, reason = "libc is called here")]
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "not published"
)]
#![allow(
    clippy::must_use_candidate,
    clippy::missing_safety_doc,
    reason = "not published"
)]
#![cfg(any(target_os = "linux", target_os = "android"))]

pub mod child;
pub mod command;
pub mod cost;
pub mod cpus;
pub mod filter;
pub mod functions;
pub mod maps;
pub mod not_run;
pub mod oracle;
mod pages;
pub mod program;
pub mod signals;
pub mod vector;

pub use functions::{CLOCKS, FUNCTIONS, PATHS, Path, assert_bracketed, settable};
pub use maps::page_size;
pub use nix;
pub use not_run::{has_proc, has_tool, not_run_here};
pub use pages::Pages;
