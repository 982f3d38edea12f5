//! The vDSO answers, and otherwise a system call.
//!
//! The first call of any function: `calls` calls the slot, in which is the slot's resolver.
//! `resolve` finds the vDSO ([`vdso::find`](crate::process::vdso)), decides which symbol answers
//! each function ([`decide`](crate::choice)), and fills every slot. Later calls find the vDSO's
//! function in the slot.

#![allow(unsafe_code, reason = "function pointers and system calls")]

pub(crate) mod calls;
mod resolve;
mod slot;
pub(crate) mod syscall;
mod time32;

pub use resolve::{routes, warm_up};
