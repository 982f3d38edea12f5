//! The routes of this process.

use super::record::RECORDS;
use super::resolve::resolve_all;
use crate::arch::native::ABI;
use crate::choice::FallbackReason;
use crate::routes::Routes;

/// Returns what answers each function in this process. It calls [`warm_up`] first.
#[must_use]
pub fn routes() -> Routes {
    warm_up();
    // `warm_up` leaves no record empty.
    let outcomes = RECORDS.each_ref().map(|record| record.load().unwrap_or(Err(FallbackReason::NoSymbol)));
    Routes::new(&ABI, outcomes)
}

/// Finds the vDSO and its functions, as the first call of any function does.
///
/// Call it before a thread enters a sandbox that kills for the system calls of the first call:
/// `rt_sigprocmask` and, without the feature `libc`, `prctl`, `openat`, `read` and `close`.
pub fn warm_up() {
    if RECORDS.iter().any(|record| record.load().is_none()) {
        resolve_all();
    }
}
