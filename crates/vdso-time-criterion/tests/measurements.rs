//! The measurements: times that the kernel's clock confirms, sums, units, and use by criterion.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(clippy::cast_precision_loss, reason = "the values are far below 2^53")]

use std::env;
use std::fs;
use std::thread;
use std::time::Duration;

use criterion::measurement::{Measurement, WallTime};
use criterion::{BatchSize, Criterion};
use test_support::not_run_here;
use vdso_time::{ClockId, MonotonicCoarse, MonotonicRaw, counter, syscall};
use vdso_time_criterion::{CounterTime, VdsoTime};

/// The kernel's `CLOCK_MONOTONIC` in nanoseconds, by system call.
fn kernel() -> f64 {
    let now = syscall::clock_gettime(ClockId::MONOTONIC).unwrap();
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// The counter, if the kernel's clock uses it.
fn counter_time() -> Option<CounterTime> {
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let is_counter = source.is_ok_and(|source| ["tsc", "arch_sys_counter"].contains(&source.trim()));
    match CounterTime::new() {
        Ok(counter) => Some(counter),
        Err(status) => {
            assert!(!is_counter, "the kernel's clock uses the counter, but: {status}");
            not_run_here("counter", status);
            None
        }
    }
}

/// Measures a sleep, between a shorter and a longer measurement of the kernel's clock. The error
/// may be `nanos` and `ppm` of the time.
fn is_bracketed<M: Measurement>(measurement: &M, nanos: f64, ppm: f64) {
    let before = kernel();
    let start = measurement.start();
    let inside = kernel();
    thread::sleep(Duration::from_millis(20));
    let inside = kernel() - inside;
    let measured = measurement.to_f64(&measurement.end(start));
    let outside = kernel() - before;
    let error = nanos + ppm / 1e6 * outside;
    assert!(inside - error <= measured && measured <= outside + error, "{inside} <= {measured} <= {outside}");
}

#[test]
fn a_measurement_is_the_kernels_time() {
    is_bracketed(&VdsoTime::new(), 0.0, 0.0);
    // NTP changes the rate of the kernel's clock by at most 500 ppm.
    is_bracketed(&VdsoTime::<MonotonicRaw>::default(), 0.0, 500.0);
    // A tick of the slowest timer.
    is_bracketed(&VdsoTime::<MonotonicCoarse>::default(), 1e7, 0.0);
    if let Some(counter) = counter_time() {
        is_bracketed(&counter, 1000.0, 500.0);
    }
}

#[test]
fn sums_and_units_are_those_of_wall_time() {
    fn check<M: Measurement>(measurement: &M) {
        let nanos = |value: &M::Value| measurement.to_f64(value);
        let zero = measurement.zero();
        let short = measurement.end(measurement.start());
        let start = measurement.start();
        thread::sleep(Duration::from_millis(1));
        let long = measurement.end(start);
        assert!(nanos(&zero).abs() < f64::EPSILON);
        assert!((nanos(&measurement.add(&zero, &long)) - nanos(&long)).abs() < 1e-3);
        // An interrupted empty measurement may count as less than nothing in a sum.
        let sum = nanos(&measurement.add(&short, &long));
        assert!((sum - nanos(&short) - nanos(&long)).abs() < 1e5, "{sum}");
        for nanos in [0.5, 2.0, 1e4, 1e7, 1e10] {
            assert_eq!(measurement.formatter().format_value(nanos), WallTime.formatter().format_value(nanos));
        }
        assert_eq!(measurement.formatter().scale_for_machines(&mut []), "ns");
    }
    check(&VdsoTime::new());
    if let Some(counter) = counter_time() {
        check(&counter);
    }
}

#[test]
fn an_empty_measurement_is_subtracted_from_each() {
    let Some(measurement) = counter_time() else { return };
    let hertz = counter::state().frequency.unwrap();
    // The least of many sums is the least interrupted.
    let least = |sum: &dyn Fn() -> f64| (0..100).map(|_| sum()).fold(f64::INFINITY, f64::min);
    let empty = least(&|| {
        let add = |sum, _| measurement.add(&sum, &measurement.end(measurement.start()));
        measurement.to_f64(&(0..1000).fold(measurement.zero(), add))
    });
    let reads = least(&|| {
        let ticks = |_| {
            let start = counter::ticks_ordered();
            counter::ticks_ordered() - start
        };
        (0..1000).map(ticks).sum::<u64>() as f64 * 1e9 / hertz as f64
    });
    assert!(empty < reads / 2.0, "{empty} ns, and {reads} ns without subtraction");
}

#[test]
fn criterion_accepts_the_measurements() {
    fn calls<M: Measurement + 'static>(measurement: M) -> u64 {
        let mut calls = 0;
        let mut criterion = Criterion::default()
            .with_measurement(measurement)
            .without_plots()
            .output_directory(&env::temp_dir().join("vdso-time-criterion-test"))
            .sample_size(10)
            .warm_up_time(Duration::from_millis(5))
            .measurement_time(Duration::from_millis(20));
        criterion.bench_function("a sleep", |bencher| {
            let routine = |()| {
                calls += 1;
                thread::sleep(Duration::from_micros(50));
            };
            bencher.iter_batched(|| (), routine, BatchSize::PerIteration);
        });
        calls
    }
    assert!(calls(VdsoTime::new()) >= 10);
    if let Some(counter) = counter_time() {
        assert!(calls(counter) >= 10);
    }
}
