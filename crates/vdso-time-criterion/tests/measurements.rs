//! What criterion is given: units, sums, and times that a kernel's clock confirms.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(clippy::cast_precision_loss, reason = "microseconds matter here, and an uptime has 2^53 of them")]

use std::fs;
use std::time::Duration;

use criterion::measurement::{Measurement, WallTime};
use criterion::{BatchSize, Criterion};
use vdso_time::{ClockId, MonotonicCoarse, MonotonicRaw, counter, syscall};
use vdso_time_criterion::{CounterTime, VdsoTime};

/// The kernel's own `CLOCK_MONOTONIC`, by system call.
fn kernel() -> f64 {
    let now = syscall::clock_gettime(ClockId::MONOTONIC).expect("the kernel has this clock");
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// The counter, or nothing where the kernel keeps its time by something else.
fn by_counter() -> Option<CounterTime> {
    let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let by_counter = source.is_ok_and(|source| ["tsc", "arch_sys_counter"].contains(&source.trim()));
    match CounterTime::new() {
        Ok(counter) => Some(counter),
        Err(status) if !by_counter => {
            println!("not run here: {status}");
            None
        }
        Err(status) => panic!("the kernel keeps its time by the counter, yet: {status}"),
    }
}

/// A measurement lies between a shorter one and a longer one of the kernel's; `tolerance` is the nanoseconds it may be off by, and
/// `rate` the part of it.
fn lies_between<M: Measurement>(measurement: &M, tolerance: f64, rate: f64) {
    let before = kernel();
    let start = measurement.start();
    let inside = kernel();
    std::thread::sleep(Duration::from_millis(20));
    let inside = kernel() - inside;
    let nanos = measurement.to_f64(&measurement.end(start));
    let outside = kernel() - before;
    let slack = tolerance + rate * outside;
    assert!(inside - slack <= nanos && nanos <= outside + slack, "{inside} <= {nanos} <= {outside}");
}

#[test]
fn a_measurement_is_what_the_kernel_says() {
    lies_between(&VdsoTime::new(), 0.0, 0.0);
    // Raw, unlike monotonic, is not bent by NTP: 500 ppm at most.
    lies_between(&VdsoTime::<MonotonicRaw>::default(), 0.0, 0.0005);
    // A tick of the slowest timer.
    lies_between(&VdsoTime::<MonotonicCoarse>::default(), 1e7, 0.0);
    if let Some(counter) = by_counter() {
        lies_between(&counter, 1000.0, 0.0005);
    }
}

#[test]
fn sums_and_units_are_those_of_wall_time() {
    fn check<M: Measurement>(measurement: &M) {
        let (one, other) = (measurement.end(measurement.start()), {
            let start = measurement.start();
            std::thread::sleep(Duration::from_millis(1));
            measurement.end(start)
        });
        let zero = measurement.zero();
        let nanos = |value: &M::Value| measurement.to_f64(value);
        assert!(nanos(&zero).abs() < f64::EPSILON);
        assert!((nanos(&measurement.add(&zero, &other)) - nanos(&other)).abs() < 1e-3);
        // An empty measurement may come to less than nothing beside a longer one, by the jitter of a read or an interrupt.
        let both = nanos(&measurement.add(&one, &other));
        assert!((both - nanos(&one) - nanos(&other)).abs() < 1e5, "{both}");
        for nanos in [0.5, 2.0, 1e4, 1e7, 1e10] {
            assert_eq!(measurement.formatter().format_value(nanos), WallTime.formatter().format_value(nanos));
        }
        assert_eq!(measurement.formatter().scale_for_machines(&mut []), "ns");
    }
    check(&VdsoTime::new());
    if let Some(counter) = by_counter() {
        check(&counter);
    }
}

#[test]
fn what_an_empty_measurement_takes_is_subtracted_each_time() {
    let Some(measurement) = by_counter() else { return };
    // A thousand empty ones, and a thousand times two reads of the counter one after the other: of a hundred such sums the least is
    // the least interrupted.
    let least = |sum: &dyn Fn() -> f64| (0..100).map(|_| sum()).fold(f64::INFINITY, f64::min);
    let empty = least(&|| {
        let add = |sum, _| measurement.add(&sum, &measurement.end(measurement.start()));
        measurement.to_f64(&(0..1000).fold(measurement.zero(), add))
    });
    let hertz = counter::frequency().expect("it was used") as f64;
    let reads = least(&|| {
        let between = |_| {
            let start = counter::ticks_ordered();
            counter::ticks_ordered() - start
        };
        (0..1000).map(between).sum::<u64>() as f64 * 1e9 / hertz
    });
    assert!(empty < reads / 2.0, "{empty} ns, and {reads} unsubtracted");
}

#[test]
fn criterion_takes_them() {
    fn run<M: Measurement + 'static>(measurement: M) -> u64 {
        let mut calls = 0;
        let folder = std::env::temp_dir().join("vdso-time-criterion-test");
        let mut criterion = Criterion::default()
            .with_measurement(measurement)
            .without_plots()
            .output_directory(&folder)
            .sample_size(10)
            .warm_up_time(Duration::from_millis(5))
            .measurement_time(Duration::from_millis(20));
        criterion.bench_function("a sleep", |bencher| {
            let routine = |()| {
                calls += 1;
                std::thread::sleep(Duration::from_micros(50));
            };
            bencher.iter_batched(|| (), routine, BatchSize::PerIteration);
        });
        calls
    }
    assert!(run(VdsoTime::new()) >= 10);
    if let Some(counter) = by_counter() {
        assert!(run(counter) >= 10);
    }
}
