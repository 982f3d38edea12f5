//! What the benches share: [`harness`] measures rows and knows no clock, [`calls`] are the rows,
//! and [`pages`] show the figures.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds are far below 2^53"
)]
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "only the benches use this package"
)]

pub mod calls;
pub mod harness;
pub mod pages;
