//! `powerpc64`: no counter. Reading the timebase needs inline assembly, which Rust 1.85 has not
//! stabilized for this architecture.

use super::counter::Counter;

pub(crate) enum CpuCounter {}

impl Counter for CpuCounter {}
