//! vDSO-like ELF images for tests: a builder, an image of each kind, ways to spoil an image, and
//! what the parser promises of any bytes. The tests, the properties and the fuzz targets share it.

#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "not published"
)]
#![allow(clippy::must_use_candidate, reason = "not published")]

/// The parser, compiled again with a counter of its steps.
#[path = "../../../src/elf/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the library uses the rest"
)]
pub mod elf;

mod built;
pub mod kinds;
pub mod promises;
mod spec;
pub mod spoil;
pub mod steps;
mod tables;
pub mod walks;

pub use built::{Built, Field};
pub use spec::*;

/// Fails unless the parser keeps every promise for these bytes. Returns whether they are an image.
pub fn keeps_promises(bytes: &[u8]) -> bool {
    steps::bounded(bytes);
    walks::agree(bytes);
    promises::keep(bytes).is_some()
}
