//! The measurements are for this criterion, and for the one that the crate hands on, which is the same.

use criterion::{Criterion, criterion_group, criterion_main};
use vdso_time_criterion::{CounterTime, VdsoTime};

fn by_counter(criterion: &mut Criterion<CounterTime>) {
    criterion.bench_function("a routine", |bencher| bencher.iter(|| std::hint::black_box(1) + 1));
}

fn by_clock(criterion: &mut vdso_time_criterion::criterion::Criterion<VdsoTime>) {
    criterion.bench_function("a routine", |bencher| bencher.iter(|| std::hint::black_box(1) + 1));
}

fn counter() -> Criterion<CounterTime> {
    let counter = CounterTime::new().expect("the kernel keeps its time by the counter");
    Criterion::default().with_measurement(counter)
}

fn clock() -> Criterion<VdsoTime> {
    Criterion::default().with_measurement(VdsoTime::new())
}

criterion_group! { name = with_counter; config = counter(); targets = by_counter }
criterion_group! { name = with_clock; config = clock(); targets = by_clock }
criterion_main!(with_counter, with_clock);
