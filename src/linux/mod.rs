//! The running process: its vDSO, the clock functions, the system calls.

#![allow(unsafe_code, reason = "mappings, function pointers and system calls")]

mod adapters;
pub(crate) mod auxv;
pub(crate) mod calls;
#[cfg(vdso_time_libc_fallback)]
pub(crate) mod libc_fallback;
mod mapping;
pub(crate) mod process;
mod record;
mod resolve;
pub(crate) mod routes;
mod rseq;
pub(crate) mod slot;
pub(crate) mod syscall;
pub mod vdso;

#[cfg(not(vdso_time_libc_fallback))]
pub(crate) use crate::arch::native;
#[cfg(vdso_time_libc_fallback)]
pub(crate) use libc_fallback as native;
