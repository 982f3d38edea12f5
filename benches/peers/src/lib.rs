//! What the programs of this package share.

#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "only this package uses it"
)]

pub mod weather;
