//! The user's criterion is the exported one.

fn benches(criterion: &mut criterion::Criterion<vdso_time_criterion::CounterTime>) {
    criterion.bench_function("a routine", |bencher| bencher.iter(|| std::hint::black_box(1) + 1));
}

fn main() {
    let counter = vdso_time_criterion::CounterTime::new().unwrap();
    benches(&mut vdso_time_criterion::criterion::Criterion::default().with_measurement(counter));
}
