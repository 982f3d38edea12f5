//! `cargo bench --bench clocks`: every row in criterion, whose options follow `--`.

use std::time::Duration;

use criterion::Criterion;
use vdso_time_benches::calls;
use vdso_time_benches::harness::Spacing;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300))
        .sample_size(30)
        .nresamples(10_000)
        .configure_from_args();
    for row in calls::rows() {
        let mut group = criterion.benchmark_group(&row.name);
        for contender in &row.contenders {
            group.bench_function(contender.name, |bencher| {
                bencher.iter_custom(|calls| contender.time(Spacing::BackToBack, calls));
            });
        }
    }
    println!("{}", calls::notes().join("\n"));
    criterion.final_summary();
}
