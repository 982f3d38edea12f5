//! The first call of a process.

use std::time::Instant;

use vdso_time::{ClockId, Timespec, clock_gettime, counter, syscall};
use vdso_time_benches::calls::keep;
use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::document::Table;
use vdso_time_benches::harness::samples::{OURS, Samples};

pub const FIRST: &str = "first call";

/// How each contender reads a monotonic clock.
const CONTENDERS: [(&str, fn()); 6] = [
    (OURS, || keep(clock_gettime(ClockId::MONOTONIC))),
    ("vdso-time, counter", || keep(counter::monotonic())),
    ("std", || keep(Instant::now())),
    ("rustix", || keep(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))),
    ("coarsetime", || keep(coarsetime::Instant::now())),
    ("quanta", || keep(quanta::Instant::now())),
];

/// Prints the nanoseconds of the contender's first call in this process. The kernel measures them, by
/// a system call, so that the vDSO's pages are not touched.
pub fn print(name: &str) {
    let now = || syscall::clock_gettime(ClockId::MONOTONIC_RAW).map_or(0, Timespec::as_nanos);
    let nothing = (0..15).map(|_| -now() + now()).min().unwrap_or(0);
    for (_, read) in CONTENDERS.iter().filter(|(contender, _)| *contender == name) {
        let start = now();
        read();
        println!("{FIRST}\tisolated\t{name}\t{}", now() - start - nothing);
    }
}

/// Starts a process for each contender `times` times, in turns.
pub fn add(samples: &mut Samples, times: usize) -> Result<(), String> {
    (0..times).flat_map(|_| CONTENDERS).try_for_each(|(name, _)| samples.add_child(&[FIRST, name]))
}

/// Returns the microseconds of each contender.
pub fn table(samples: &Samples) -> Table {
    let mut table = Table::new("peers-first", &[FIRST, "us"]);
    for (name, _) in CONTENDERS {
        if let Some(nanos) = samples.nanos(FIRST, Spacing::Isolated, name) {
            table.rows.push(vec![name.into(), format!("{:.1}", nanos / 1e3)]);
        }
    }
    table
}
