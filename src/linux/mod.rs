//! The running process: its vDSO, the clock functions, the system calls.

#![allow(unsafe_code, reason = "mappings, function pointers and system calls")]

pub(crate) mod auxv;
mod mapping;
pub(crate) mod process;
pub mod vdso;

#[cfg(vdso_time_libc_fallback)]
mod by_libc;
#[cfg(vdso_time_libc_fallback)]
pub(crate) use by_libc::{calls, routes, syscall};

#[cfg(not(vdso_time_libc_fallback))]
pub(crate) mod calls;
#[cfg(not(vdso_time_libc_fallback))]
mod record;
#[cfg(not(vdso_time_libc_fallback))]
mod resolve;
#[cfg(not(vdso_time_libc_fallback))]
pub(crate) mod routes;
#[cfg(not(vdso_time_libc_fallback))]
pub(crate) mod slot;
#[cfg(not(vdso_time_libc_fallback))]
pub(crate) mod syscall;
#[cfg(not(vdso_time_libc_fallback))]
mod time32;
