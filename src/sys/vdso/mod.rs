//! The vDSO answers, and otherwise a system call.

#![allow(unsafe_code, reason = "function pointers and system calls")]

pub(crate) mod calls;
mod record;
mod resolve;
pub(crate) mod routes;
mod slot;
pub(crate) mod syscall;
mod time32;
