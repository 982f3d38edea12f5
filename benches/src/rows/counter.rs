//! The counter clock's rows, against the bare counter, the vDSO and the system call.

use std::time::{Duration, Instant};

use vdso_time::counter::{self, Status};
use vdso_time::{ClockId, Routes, syscall};

use super::keep::Keep;
use super::{floor, row};
use crate::harness::{Contender, Row};

/// The rows. The contenders: `counter`, the counter clock; `ticks`, a read of the bare counter, ordered as the clock's is; `syscall`, for
/// the wall clock gettimeofday(2); `direct`, the vDSO's clock_gettime.
pub(super) fn rows(routes: &Routes) -> Vec<Row> {
    settle();
    let direct = |clock| floor(routes.clock_gettime, |abi| &abi.clock_gettime, clock);
    let monotonic = [
        Contender::new("counter", || counter::monotonic().keep()),
        Contender::new("ticks", || counter::ticks().keep()),
        Contender::new("syscall", || syscall::clock_gettime(ClockId::MONOTONIC).keep()),
    ];
    let ordered = [
        Contender::new("counter", || counter::monotonic_ordered().keep()),
        Contender::new("ticks", || counter::ticks_ordered().keep()),
    ];
    let realtime = [
        Contender::new("counter", || counter::realtime().keep()),
        Contender::new("ticks", || counter::ticks().keep()),
        Contender::new("syscall", || syscall::gettimeofday().keep()),
    ];
    vec![
        row("BM_counter_monotonic", monotonic.into_iter().chain(direct(ClockId::MONOTONIC))),
        row("BM_counter_monotonic_ordered", ordered.into_iter().chain(direct(ClockId::MONOTONIC))),
        row("BM_counter_realtime", realtime.into_iter().chain(direct(ClockId::REALTIME))),
    ]
}

/// Why the counter rows are the vDSO's, if they are.
pub(super) fn note() -> Option<String> {
    (settle() != Status::Used).then(|| format!("The counter is not used here: {}.", counter::status()))
}

/// Reads until the counter is used, if that does not take longer than a calibration.
fn settle() -> Status {
    let start = Instant::now();
    while counter::status() != Status::Used && start.elapsed() < Duration::from_millis(100) {
        let _ = counter::monotonic();
    }
    counter::status()
}
