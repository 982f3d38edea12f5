//! The same as `linux` on other systems, where std's clock answers.

use crate::engine::status::Refusal;

pub(super) fn call_kernel() -> Option<()> {
    None
}

pub(super) fn detect() -> Result<(), Refusal> {
    Err(Refusal::Unsupported)
}
