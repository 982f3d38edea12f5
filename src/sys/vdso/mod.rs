//! Calls the vDSO, and makes a system call where the vDSO cannot answer.
//!
//! Each function in `calls` calls the function in its slot. Before the first call of any of them,
//! every slot holds a resolver. The resolver (in `resolve`) finds the vDSO
//! ([`Vdso::locate`](crate::process::vdso::Vdso::locate)), decides which symbol answers each
//! function ([`decide`](crate::choice::decide)), and fills every slot. Later calls find the vDSO's
//! function in the slot.

#![allow(unsafe_code, reason = "function pointers and system calls")]

pub(crate) mod calls;
mod resolve;
mod slot;
pub(crate) mod syscall;
mod time32;

pub use resolve::{routes, warm_up};
