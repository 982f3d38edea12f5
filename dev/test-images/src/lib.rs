//! vDSO-like ELF images for tests: a builder, an image of each kind, ways to corrupt an image, and
//! what the parser promises of any bytes. The tests, the properties and the fuzz targets share it.

#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "not published"
)]
#![allow(clippy::must_use_candidate, reason = "not published")]

mod built;
pub mod corrupt;
pub mod kinds;
pub mod promises;
mod spec;
mod tables;
pub mod worst;

pub use built::{Built, Field};
pub use spec::*;

/// Fails unless the parser keeps every promise for these bytes. Returns whether they are an image.
pub fn assert_keeps_promises(bytes: &[u8]) -> bool {
    promises::keep(bytes).is_some()
}
