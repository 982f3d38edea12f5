//! What a call costs while another CPU makes it too: as much, unless somebody writes to what both read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use vdso_time_benches::harness::samples::CONTROL;
use vdso_time_benches::harness::{Contender, Row, Spacing, nanos_per_call};

use crate::bars::SCALING;
use crate::rows::{self, COUNTER, DIRECT, MONOTONIC, OURS};

/// The row, the contender, and what the tables call it.
pub const CONTENDERS: &[(&str, &str, &str)] = &[
    (MONOTONIC, OURS, OURS),
    (MONOTONIC, DIRECT, DIRECT),
    (MONOTONIC, "libc", "libc"),
    (MONOTONIC, "std", "std"),
    (MONOTONIC, "rustix", "rustix"),
    ("clock_gettime(MONOTONIC_COARSE)", "coarsetime", "coarsetime"),
    (COUNTER, OURS, "vdso-time's counter"),
    (COUNTER, "quanta Clock::now", "quanta Clock::now"),
    (COUNTER, "quanta Instant::now", "quanta Instant::now"),
    (COUNTER, "minstant", "minstant"),
    (COUNTER, "fastant", "fastant"),
];

/// Calls of a batch, a few microseconds to a few tens.
const CALLS: u64 = 500;

fn find(rows: &[Row], row: &str, contender: &str) -> Option<usize> {
    rows.iter().find(|it| it.name == row)?.contenders.iter().position(|it| it.name == contender)
}

/// The nanoseconds of the fastest batch.
fn fastest(contender: &Contender, spacing: Spacing, batches: usize) -> f64 {
    let time = |_| nanos_per_call(contender.time(spacing, CALLS), CALLS);
    (0..batches).map(time).fold(f64::INFINITY, f64::min)
}

/// Prints, of each contender, what a call costs alone, alone again, and beside another thread's; nothing on a single CPU.
pub fn print(batches: usize) {
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let all = rows::rows();
    for &(row, contender, name) in CONTENDERS {
        let Some(at) = find(&all, row, contender) else { continue };
        let row_at = all.iter().position(|it| it.name == row).unwrap_or_default();
        for spacing in Spacing::ALL {
            let [mut alone, mut again, mut together] = [f64::INFINITY; 3];
            let mine = &all[row_at].contenders[at];
            // In turns, so that a machine that slows down slows down all.
            for _ in 0..4 {
                alone = alone.min(fastest(mine, spacing, batches));
                together = together.min(beside_another(row_at, at, spacing, batches, mine));
                again = again.min(fastest(mine, spacing, batches));
            }
            let row = if name == OURS { SCALING.to_string() } else { format!("{SCALING}: {name}") };
            let print = |who, nanos| println!("{row}\t{}\t{who}\t{nanos}", spacing.name());
            print(OURS, together);
            print("alone", alone);
            print(CONTROL[0], again);
            print(CONTROL[1], alone);
        }
    }
}

fn beside_another(row: usize, at: usize, spacing: Spacing, batches: usize, mine: &Contender) -> f64 {
    let [runs, stop] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let other = {
        let (runs, stop) = (Arc::clone(&runs), Arc::clone(&stop));
        thread::spawn(move || {
            // A contender is not shared: this is the thread's own.
            let rows = rows::rows();
            let theirs = &rows[row].contenders[at];
            while !stop.load(Ordering::Relaxed) {
                theirs.run(spacing, CALLS);
                runs.store(true, Ordering::Relaxed);
            }
        })
    };
    while !runs.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    let nanos = fastest(mine, spacing, batches);
    stop.store(true, Ordering::Relaxed);
    let _ = other.join(); // it cannot panic
    nanos
}
