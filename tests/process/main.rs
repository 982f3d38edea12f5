//! First calls, in every state that a process can be in when it makes one.
//!
//! The rule of this program: no test calls the crate in its own process. Each call is made in a
//! forked child ([`test_support::child`]), so it is a first call there, and signals, limits and
//! mappings that a test changes are changed in that child alone.

#![cfg(any(target_os = "linux", target_os = "android"))]

mod backtrace;
mod child_limit;
mod first_call;
#[cfg(feature = "std")]
mod first_conversion;
mod kernel_entry;

mod profiler;
mod signal_storm;
mod single_step;
mod small_stack;
mod stack;
mod synthetic_vdso;
mod vdso_states;
