//! An architecture without a counter that this crate can read. On powerpc64, a read of the timebase
//! needs inline assembly, which Rust 1.85 has not stabilized there.

#![allow(dead_code, reason = "most architectures have a counter")]

use super::counter::Counter;

pub(crate) enum CpuCounter {}

impl Counter for CpuCounter {}
