//! What the benches share: [`harness`] measures whatever it is given and knows no clock; [`rows`] are the calls of the tables.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(clippy::cast_precision_loss, reason = "counts and nanoseconds are far below 2^53")]

pub mod harness;
pub mod rows;
