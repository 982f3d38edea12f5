//! The running process: its auxiliary vector, and its vDSO as bytes.

#![allow(unsafe_code, reason = "mappings and system calls")]

pub(crate) mod auxv;
mod functions;
pub(crate) mod kernel;
mod mapping;
pub mod vdso;
