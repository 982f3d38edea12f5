//! The same as `linux.rs` on other systems, where std's clock answers.

use crate::engine::status::Unavailable;

pub(super) fn is_paravirtual() -> bool {
    false
}

pub(super) fn detect() -> Result<(), Unavailable> {
    Err(Unavailable::Unsupported)
}
