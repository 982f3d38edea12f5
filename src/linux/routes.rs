//! The routes of this process.

use super::record::{RECORDS, Record};
use super::resolve::resolve_all;
use crate::arch::native::ABI;
use crate::decision::Outcome;
use crate::route::Routes;

/// Returns what answers each function in this process. It calls [`warm_up`] first.
#[must_use]
pub fn routes() -> Routes {
    Routes::new(&ABI, outcomes())
}

/// Finds the vDSO and its functions, as the first call of any function does.
///
/// Call it before a thread enters a sandbox that kills for the system calls of the first call:
/// `rt_sigprocmask` and, without the feature `libc`, `prctl`, `openat`, `read` and `close`.
pub fn warm_up() {
    let _ = outcomes();
}

/// Returns what the first call found. It is the first call if there was none.
fn outcomes() -> [Outcome; 5] {
    match RECORDS.each_ref().map(Record::load) {
        [Some(time), Some(gettimeofday), Some(clock_gettime), Some(clock_getres), Some(getcpu)] => {
            [time, gettimeofday, clock_gettime, clock_getres, getcpu]
        }
        _ => resolve_all(),
    }
}
