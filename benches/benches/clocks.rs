//! `cargo bench --bench clocks`: every row in criterion, back to back. Criterion's own options follow `--`.

use std::time::Duration;

use criterion::Criterion;
use vdso_time_benches::harness::Spacing;
use vdso_time_benches::rows;

fn clocks(criterion: &mut Criterion) {
    for row in rows::clocks() {
        let mut group = criterion.benchmark_group(&row.name);
        for contender in &row.contenders {
            group.bench_function(contender.name, |bencher| {
                bencher.iter_custom(|calls| contender.time(Spacing::BackToBack, calls));
            });
        }
    }
    for note in rows::without_floor() {
        println!("{note}");
    }
}

fn main() {
    // A call takes nanoseconds: a third of a second has ten million of them.
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300))
        .sample_size(30)
        .nresamples(10_000)
        .configure_from_args();
    clocks(&mut criterion);
    criterion.final_summary();
}
