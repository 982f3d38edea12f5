//! The same as `linux` on other systems, where std's clock answers.

use vdso_time::Errno;

use crate::engine::source::Timex;
use crate::engine::status::Refusal;

pub(super) fn timex() -> Result<Timex, Errno> {
    Err(Errno::ENOSYS)
}

pub(super) fn call_kernel() -> Option<()> {
    None
}

pub(super) fn marker() -> u64 {
    0
}

pub(super) fn detect() -> Result<(), Refusal> {
    Err(Refusal::Unsupported)
}
