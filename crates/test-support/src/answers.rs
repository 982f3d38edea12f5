//! Whether every function answers rightly, where nothing but system calls may be made: in a signal handler, behind a
//! sandbox, in a process whose vDSO is gone. Nothing here panics, allocates or takes a lock.

use vdso_time::{ClockId, Errno};

use super::{Path, lies_between, oracle};

/// Every clock of the vDSO's, and one that is always the kernel's.
pub const CLOCKS: [ClockId; 8] = [
    ClockId::MONOTONIC,
    ClockId::REALTIME,
    ClockId::MONOTONIC_RAW,
    ClockId::MONOTONIC_COARSE,
    ClockId::REALTIME_COARSE,
    ClockId::BOOTTIME,
    ClockId::TAI,
    ClockId::THREAD_CPUTIME,
];

/// The first function of a path whose answer is not the kernel's, or not between two of the kernel's.
pub fn wrong(path: &Path) -> Option<&'static str> {
    let right = |right: bool, what| if right { Ok(()) } else { Err(what) };
    let all = || {
        for clock in CLOCKS {
            let id = clock.as_raw();
            let kernel = || oracle::clock_gettime(id);
            right(between(kernel, || (path.clock_gettime)(clock)), "clock_gettime")?;
            let kernel = || oracle::clock_getres(id);
            right(between(kernel, || (path.clock_getres)(clock)), "clock_getres")?;
        }
        let micros = || (path.gettimeofday)().map(|now| (now.tv_sec, now.tv_usec));
        right(between(oracle::micros, micros), "gettimeofday")?;
        right(between(oracle::seconds, path.time), "time")?;
        right(is_here(path), "getcpu")
    };
    all().err()
}

fn between<T: PartialOrd>(
    kernel: impl Fn() -> Result<T, i32>,
    read: impl FnOnce() -> Result<T, Errno>,
) -> bool {
    let before = kernel();
    let ours = read().map_err(Errno::raw_os_error);
    before.is_ok() && lies_between(&before, &ours, &kernel())
}

/// A thread may be moved away and back between the kernel's two answers, so it is asked again.
fn is_here(path: &Path) -> bool {
    (0..100).any(|_| {
        let before = oracle::getcpu();
        let ours = (path.getcpu)().map(|here| (here.cpu, here.node)).map_err(Errno::raw_os_error);
        before.is_ok() && ours == before
    })
}
