//! Tests that measurements and their sums agree with the kernel's clock, and that empty
//! measurements are subtracted.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(clippy::cast_precision_loss, reason = "the values are far below 2^53")]

use std::thread;
use std::time::Duration;

use criterion::measurement::{Measurement, WallTime};
use test_support::{not_run_here, oracle};
use vdso_time::{ClockId, Monotonic, MonotonicCoarse, MonotonicRaw, syscall};
use vdso_time_counter as counter;
use vdso_time_criterion::{CounterTime, VdsoTime};

/// Returns the kernel's `CLOCK_MONOTONIC` in nanoseconds, from a system call.
fn kernel() -> f64 {
    let now = syscall::clock_gettime(ClockId::MONOTONIC).unwrap();
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Returns the counter, if the kernel's clock uses it.
fn counter_time() -> Option<CounterTime> {
    // In an emulator's user mode the clock source belongs to the host, which has another
    // architecture.
    let is_x86 = cfg!(any(target_arch = "x86", target_arch = "x86_64"));
    let own = if is_x86 { "tsc" } else { "arch_sys_counter" };
    let is_counter = oracle::clock_source().as_deref() == Some(own);
    match CounterTime::new() {
        Ok(counter) => Some(counter),
        Err(status) => {
            assert!(
                !is_counter,
                "the kernel's clock uses the counter, but: {status}"
            );
            not_run_here(status);
            None
        }
    }
}

/// Measures two sleeps. Fails unless the sum lies between a shorter and a longer measurement with
/// the kernel's clock. The sum may be off by `nanos` plus `ppm` of the time.
fn is_bracketed<M: Measurement>(measurement: &M, nanos: f64, ppm: f64) {
    let mut sum = measurement.zero();
    let mut least = 0.0;
    let mut most = 0.0;
    assert!(measurement.to_f64(&sum).abs() < f64::EPSILON);
    for _ in 0..2 {
        let before = kernel();
        let start = measurement.start();
        let inside = kernel();
        thread::sleep(Duration::from_millis(10));
        least += kernel() - inside;
        sum = measurement.add(&sum, &measurement.end(start));
        most += kernel() - before;
    }
    let measured = measurement.to_f64(&sum);
    let error = nanos + ppm / 1e6 * most;
    assert!(
        least - error <= measured && measured <= most + error,
        "{least} <= {measured} <= {most}"
    );
    assert_eq!(
        measurement.formatter().format_value(2.0),
        WallTime.formatter().format_value(2.0)
    );
}

#[test]
fn a_measurement_is_the_kernels_time() {
    is_bracketed(&VdsoTime::<Monotonic>::default(), 0.0, 0.0);
    // NTP changes the rate of the kernel's clock by at most 500 ppm.
    is_bracketed(&VdsoTime::<MonotonicRaw>::default(), 0.0, 500.0);
    // 20 ms are two ticks of the slowest timer.
    is_bracketed(&VdsoTime::<MonotonicCoarse>::default(), 2e7, 0.0);
    if let Some(counter) = counter_time() {
        is_bracketed(&counter, 1000.0, 500.0);
    }
}

#[test]
fn an_empty_measurement_is_subtracted_from_each() {
    let Some(measurement) = counter_time() else {
        return;
    };
    let hertz = counter::state().frequency.unwrap();
    // The smallest of many sums is the one that was interrupted least.
    let least = |sum: &dyn Fn() -> f64| (0..100).map(|_| sum()).fold(f64::INFINITY, f64::min);
    let empty = least(&|| {
        let add = |sum, _| measurement.add(&sum, &measurement.end(measurement.start()));
        measurement.to_f64(&(0..1000).fold(measurement.zero(), add))
    });
    let reads = least(&|| {
        let ticks = |_| {
            let start = counter::Ticks::read_ordered().as_raw();
            counter::Ticks::read_ordered().as_raw() - start
        };
        (0..1000).map(ticks).sum::<u64>() as f64 * 1e9 / hertz as f64
    });
    assert!(
        empty < reads / 2.0,
        "{empty} ns, and {reads} ns without subtraction"
    );
}
