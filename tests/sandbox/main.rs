//! Sandboxes: denied system calls give a typed error or the documented fallback, never a wrong
//! time.
//!
//! The rule of this program: no test calls the crate in its own process. Each call is made in a
//! forked child ([`test_support::child`]). So it is a first call there, and the sandbox ends with
//! that child.

#![cfg(any(target_os = "linux", target_os = "android"))]

#[cfg(any(
    target_arch = "x86",
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "arm"
))]
mod android;
mod denied_calls;
mod denied_counter;
