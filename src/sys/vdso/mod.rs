//! Calls the vDSO, and makes a system call where the vDSO cannot answer.
//!
//! In the first call of any function, `calls` calls the function in the slot, which is the
//! resolver. `resolve` finds the vDSO ([`vdso::find`](crate::process::vdso)), decides which symbol
//! answers each function ([`decide`](crate::choice)), and fills every slot. Later calls find the
//! vDSO's function in the slot.

#![allow(unsafe_code, reason = "function pointers and system calls")]

pub(crate) mod calls;
mod resolve;
mod slot;
pub(crate) mod syscall;
mod time32;

pub use resolve::{routes, warm_up};
