//! Tests of the counter clock on the machine's own counter.
//!
//! The rule of this program: no test reads the counter clock in its own process. Each read is made
//! in a forked child ([`test_support::child`]). So the clock is not calibrated when the child
//! starts, and no thread of another test makes a segment meanwhile.

#![cfg(any(target_os = "linux", target_os = "android"))]

mod clock;
mod sandbox;
#[cfg(target_arch = "aarch64")]
mod self_synchronized;

use std::time::{Duration, Instant};

use test_support::{not_run_here, oracle};
use vdso_time::__private::NATIVE;
use vdso_time::{ClockId, ReadCost, Route, read_cost, routes};
use vdso_time_counter::{
    self as counter, CounterMonotonic, CounterMonotonicUnordered, CounterRealtime,
    CounterRealtimeUnordered, State, Status, Unavailable,
};

/// Returns whether the counter's rate never changes: "Invariant TSC" of the vendors' manuals, leaf
/// 0x80000007, EDX bit 8.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn is_invariant() -> bool {
    #[cfg(target_arch = "x86")]
    use std::arch::x86::__cpuid;
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::__cpuid;
    #[allow(unsafe_code, unused_unsafe, reason = "a safe function since Rust 1.94")]
    // SAFETY: a CPU with a counter has the instruction.
    let leaf = |number| unsafe { __cpuid(number) };
    let is_stated = leaf(0x8000_0000).eax >= 0x8000_0007 && leaf(0x8000_0007).edx & 1 << 8 != 0;
    (is_stated || cfg!(vdso_time_assume_invariant)) && !cfg!(vdso_time_not_invariant)
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn is_invariant() -> bool {
    false // it is not asked
}

/// Returns, from what the kernel reports, whether the clock should use the counter after
/// calibration.
fn expected() -> Result<(), Unavailable> {
    let (sources, is_invariant): (&[&str], _) = match NATIVE.map(|abi| abi.name) {
        Some("x86" | "x86_64") => (&["tsc", "tsc-early", "kvm-clock"], is_invariant()),
        Some("aarch64" | "arm") => (&["arch_sys_counter"], true),
        Some("riscv64") => (&["riscv_clocksource"], true),
        Some("s390x") => (&["tod"], true),
        Some("loongarch64") => (&["Constant"], true),
        Some("powerpc64") | None => return Err(Unavailable::NoCounter),
        Some(other) => panic!("no clock source is known for {other}"),
    };
    let vdso_answers = matches!(routes().clock_gettime, Route::Vdso { .. });
    if cfg!(not(target_has_atomic = "64")) || !vdso_answers {
        return Err(Unavailable::NoCounter);
    }
    match oracle::clock_source() {
        None => Err(Unavailable::ClockSourceUnknown),
        Some(name) if !sources.contains(&name.as_str()) => Err(Unavailable::ClockSource),
        Some(_) if !is_invariant => Err(Unavailable::NotInvariant),
        // QEMU's user mode has a vDSO that makes the system call.
        Some(_) if read_cost(ClockId::MONOTONIC) == ReadCost::SystemCall => {
            Err(Unavailable::SlowVdso)
        }
        Some(_) => Ok(()),
    }
}

/// Reads until the status is as expected, for as long as a calibration may take on a busy machine.
fn settle() -> State {
    let start = Instant::now();
    let expected = expected().map_or_else(Status::Unavailable, |()| Status::Used);
    loop {
        let _ = CounterMonotonicUnordered::now();
        let state = counter::state();
        if state.status == expected || start.elapsed() > Duration::from_secs(10) {
            return state;
        }
    }
}

/// Returns whether the counter is used after calibration, or records the test as not run.
fn is_used() -> bool {
    let status = settle().status;
    if status != Status::Used {
        not_run_here(format!("the counter is not used: {status}"));
    }
    status == Status::Used
}

/// Returns the nanoseconds of the kernel's clock.
fn kernel(id: i32) -> i64 {
    oracle::clock_gettime(id).unwrap().as_nanos() as i64
}

/// The allowed error in nanoseconds, beside the error bound: for the offset between the wall clock
/// and the monotonic clock, and for the reads in [`assert_near`].
const OFFSET: i64 = 100;

/// Fails unless each of the clock's reads lies between the kernel's two, within the error bound.
#[track_caller]
fn assert_near() {
    let reads: [(i32, fn() -> i64); 5] = [
        (libc::CLOCK_MONOTONIC, || {
            CounterMonotonicUnordered::now().as_nanos()
        }),
        (libc::CLOCK_MONOTONIC, || CounterMonotonic::now().as_nanos()),
        (libc::CLOCK_REALTIME, || {
            CounterRealtimeUnordered::now().as_nanos() as i64
        }),
        (libc::CLOCK_REALTIME, || {
            CounterRealtime::now().as_nanos() as i64
        }),
        (libc::CLOCK_REALTIME, || {
            CounterRealtime::of(CounterMonotonic::now())
                .unwrap()
                .as_nanos() as i64
        }),
    ];
    for (id, read) in reads {
        // A bound holds until its segment ends, and the next segment may begin meanwhile. So the
        // larger of the bounds before and after the read counts.
        let error_bound = || counter::state().error_bound;
        let bound = error_bound();
        let before = kernel(id);
        let now = read();
        let after = kernel(id);
        // If the clock stands still until the kernel's clock has caught up, it is nearer to the
        // kernel's clock now than it was at the read, by the time that has passed since.
        let bound =
            bound.max(error_bound()).as_nanos() as i64 + OFFSET + (kernel(id) - before).max(0);
        assert!(
            before - bound <= now && now <= after + bound,
            "{before} <= {now} <= {after}, {bound}"
        );
    }
}
