//! The routes of this process.

use super::calls;
use super::native::ABI;
use super::record::RECORDS;
use super::resolve::resolve_all;
use super::rseq;
use crate::arch::NATIVE;
use crate::route::{Route, Routes};

/// Returns what answers each function in this process. It calls [`warm_up`] first.
#[must_use]
pub fn routes() -> Routes {
    warm_up();
    let is_recorded = NATIVE.is_some();
    let outcomes = RECORDS.each_ref().map(|record| record.load().filter(|_| is_recorded));
    let mut routes = Routes::new(&ABI, outcomes);
    if rseq::has_node() {
        routes.getcpu = Route::Rseq;
    }
    routes.cpu = if rseq::has_cpu() { Route::Rseq } else { routes.getcpu };
    routes
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

/// Returns the CPU, if that takes no system call. Not before the first call.
#[inline]
#[must_use]
pub fn cpu_in_user_space() -> Option<u32> {
    let [.., getcpu] = &RECORDS;
    // A thread can lack an rseq area that others have.
    rseq::cpu().or_else(|| if getcpu.is_symbol() { Some(calls::getcpu().ok()?.cpu) } else { None })
}
