//! criterion: a benchmark that is timed with the CPU's counter. `cargo run --example` runs the
//! routine once and measures nothing, because criterion measures only if it gets the argument
//! `--bench`, which `cargo bench` passes.

use std::hint::black_box;

use criterion::Criterion;
use vdso_time_criterion::CounterTime;

fn benches(criterion: &mut Criterion<CounterTime>) {
    criterion.bench_function("a routine", |bencher| {
        bencher.iter(|| black_box(1) + 1);
    });
}

fn main() {
    let counter = match CounterTime::new() {
        Ok(counter) => counter,
        Err(status) => {
            println!("the counter is not used: {status}");
            return;
        }
    };
    let criterion = Criterion::default().with_measurement(counter);
    let mut criterion = criterion.configure_from_args();
    benches(&mut criterion);
}
