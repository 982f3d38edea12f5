//! Reads per second of many threads, and under a filter of system calls.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use vdso_time::{ClockId, clock_gettime, syscall};
use vdso_time_benches::calls::keep::Keep as _;
use vdso_time_benches::calls::{self, SYSCALL, keep};
use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::samples::{OURS, Samples, say};
use vdso_time_benches::pages::Table;
use vdso_time_counter as counter;

/// A row is a number of threads, and what is done to them.
pub const ROWS: [&str; 5] = ["1 thread", "2 threads", "8 threads", "64 threads", SECCOMP];
const SECCOMP: &str = "1 thread, seccomp filter";

const COUNTER: &str = "vdso-time, counter";

/// Makes so many calls.
type Loop = fn(usize);

const CONTENDERS: [(&str, Loop); 5] = [
    (OURS, |calls| {
        (0..calls).for_each(|_| clock_gettime(ClockId::MONOTONIC).keep())
    }),
    (COUNTER, |calls| {
        (0..calls).for_each(|_| keep(counter::CounterMonotonicUnordered::now().as_nanos()))
    }),
    ("std", |calls| (0..calls).for_each(|_| keep(Instant::now()))),
    ("quanta", |calls| {
        (0..calls).for_each(|_| keep(quanta::Instant::now()))
    }),
    (SYSCALL, |calls| {
        (0..calls).for_each(|_| syscall::clock_gettime(ClockId::MONOTONIC).keep())
    }),
];

/// The work of the counter clock in a second of its turn.
const SEGMENTS: &str = "segments / s";
const ASKED: &str = "vDSO reads per million";

/// Measures each contender for so many milliseconds, and prints the nanoseconds of a read.
pub fn print(row: &str, milliseconds: usize) -> Result<(), String> {
    let length = Duration::from_millis(milliseconds as u64);
    let threads = row
        .split(' ')
        .next()
        .and_then(|count| count.parse().ok())
        .ok_or("no threads")?;
    if row == SECCOMP {
        install_filter().map_err(|error| format!("seccomp: {error}"))?;
    }
    calls::settle();
    for (name, read) in CONTENDERS {
        let before = counter::state().statistics;
        let (reads, seconds) = measure(read, threads, length);
        say(row, name, seconds * 1e9 / reads);
        if name == COUNTER {
            let after = counter::state().statistics;
            say(
                row,
                SEGMENTS,
                (after.segments - before.segments) as f64 / seconds,
            );
            say(
                row,
                ASKED,
                (after.vdso_reads - before.vdso_reads) as f64 / reads * 1e6,
            );
        }
    }
    Ok(())
}

/// Returns how many reads the threads made, and in how many seconds.
fn measure(read: Loop, threads: usize, length: Duration) -> (f64, f64) {
    const BATCH: usize = 1000;
    let barrier = Barrier::new(threads + 1);
    let end = AtomicBool::new(false);
    let work = || {
        barrier.wait();
        barrier.wait();
        let mut reads = 0;
        while !end.load(Ordering::Relaxed) {
            read(BATCH);
            reads += BATCH;
        }
        reads
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        barrier.wait();
        let start = Instant::now();
        barrier.wait();
        thread::sleep(length);
        end.store(true, Ordering::Relaxed);
        let reads: usize = threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .sum();
        (reads as f64, start.elapsed().as_secs_f64())
    })
}

/// Allows 450 system calls by number, as a container's filter does.
fn install_filter() -> Result<(), Box<dyn std::error::Error>> {
    let rules = (0..450).map(|number| (number, Vec::new())).collect();
    let errno = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(
        rules,
        errno,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    let program: BpfProgram = filter.try_into()?;
    Ok(apply_filter(&program)?)
}

/// Returns the million reads per second of all threads together.
pub fn table(samples: &Samples) -> Table {
    let names = CONTENDERS.map(|(name, _)| name);
    let head = [
        &["million reads per second"],
        names.as_slice(),
        &[SEGMENTS, ASKED],
    ]
    .concat();
    let mut table = Table::new("peers-scale", head);
    for row in ROWS {
        let rates = names.map(|name| {
            samples
                .nanos(row, Spacing::Isolated, name)
                .map(|nanos| 1e3 / nanos)
        });
        let rates = rates.map(|rate| rate.map(|rate| format!("{rate:.1}")));
        table.add(
            row,
            rates
                .into_iter()
                .chain([SEGMENTS, ASKED].map(|name| samples.isolated(row, name, 0))),
        );
    }
    table
}
