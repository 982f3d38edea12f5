//! criterion: a benchmark that is timed with the CPU's counter. As an example it only runs the
//! routine once; under `cargo bench` it would measure.

use std::hint::black_box;

use criterion::Criterion;
use vdso_time_criterion::CounterTime;

fn benches(criterion: &mut Criterion<CounterTime>) {
    criterion.bench_function("a routine", |bencher| bencher.iter(|| black_box(1) + 1));
}

fn main() {
    match CounterTime::new() {
        Ok(counter) => benches(
            &mut Criterion::default()
                .with_measurement(counter)
                .configure_from_args(),
        ),
        Err(status) => println!("the counter is not used: {status}"),
    }
}
