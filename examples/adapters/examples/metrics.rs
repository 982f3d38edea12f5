//! metrics: a histogram of durations on the CPU's counter.

use std::hint::black_box;

use vdso_time_counter::CounterMonotonic;

fn main() {
    for _ in 0..3 {
        let start = CounterMonotonic::now();
        let _work: u64 = (0..black_box(1000)).sum();
        metrics::histogram!("work_seconds").record(start.elapsed());
    }
}
