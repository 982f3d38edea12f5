//! The same as `linux.rs` on other systems, where std's clock answers.

use crate::engine::status::Refusal;

pub(super) fn is_paravirtual() -> bool {
    false
}

pub(super) fn detect() -> Result<(), Refusal> {
    Err(Refusal::Unsupported)
}
