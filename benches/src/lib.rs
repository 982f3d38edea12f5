//! Code that the benches share: [`harness`] measures rows without knowing clocks, [`calls`] defines
//! the rows, and [`pages`] shows the figures.

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
