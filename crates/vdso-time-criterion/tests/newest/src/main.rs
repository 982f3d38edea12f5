//! The measurements work with the user's criterion and with the exported one: they are the same.

use criterion::{Criterion, criterion_group, criterion_main};
use vdso_time_criterion::{CounterTime, VdsoTime};

fn with_counter(criterion: &mut Criterion<CounterTime>) {
    criterion.bench_function("a routine", |bencher| bencher.iter(|| std::hint::black_box(1) + 1));
}

fn with_clock(criterion: &mut vdso_time_criterion::criterion::Criterion<VdsoTime>) {
    criterion.bench_function("a routine", |bencher| bencher.iter(|| std::hint::black_box(1) + 1));
}

fn counter() -> Criterion<CounterTime> {
    Criterion::default().with_measurement(CounterTime::new().unwrap())
}

fn clock() -> Criterion<VdsoTime> {
    Criterion::default().with_measurement(VdsoTime::new())
}

criterion_group! { name = counters; config = counter(); targets = with_counter }
criterion_group! { name = clocks; config = clock(); targets = with_clock }
criterion_main!(counters, clocks);
