//! Reads per second of many threads, and under a filter of system calls.

use std::collections::BTreeMap;
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

/// The first argument of a child process that measures one of these rows.
pub const COMMAND: &str = "scale";

const ONE: &str = "1 thread";
pub const TWO: &str = "2 threads";
pub const MANY: &str = "64 threads";
const SECCOMP: &str = "1 thread, seccomp filter";

/// A row is a number of threads, and what is done to them.
pub const ROWS: [&str; 5] = [ONE, TWO, "8 threads", MANY, SECCOMP];

const COUNTER: &str = "vdso-time, counter";

/// A way to read a monotonic clock.
struct Contender {
    name: &'static str,
    /// Reads the clock so many times.
    read: fn(usize),
}

const CONTENDERS: [Contender; 5] = [
    Contender {
        name: OURS,
        read: read_ours,
    },
    Contender {
        name: COUNTER,
        read: read_counter,
    },
    Contender {
        name: "std",
        read: read_std,
    },
    Contender {
        name: "quanta",
        read: read_quanta,
    },
    Contender {
        name: SYSCALL,
        read: read_kernel,
    },
];

fn read_ours(times: usize) {
    for _ in 0..times {
        clock_gettime(ClockId::MONOTONIC).keep();
    }
}

fn read_counter(times: usize) {
    for _ in 0..times {
        keep(counter::CounterMonotonicUnordered::now().as_nanos());
    }
}

fn read_std(times: usize) {
    for _ in 0..times {
        keep(Instant::now());
    }
}

fn read_quanta(times: usize) {
    for _ in 0..times {
        keep(quanta::Instant::now());
    }
}

fn read_kernel(times: usize) {
    for _ in 0..times {
        syscall::clock_gettime(ClockId::MONOTONIC).keep();
    }
}

/// The work of the counter clock in a second of its turn.
const SEGMENTS: &str = "segments / s";
const ASKED: &str = "vDSO reads per million";

/// Measures each contender for so many milliseconds, and prints the nanoseconds of a read.
pub fn print(row: &str, milliseconds: usize) -> Result<(), String> {
    let length = Duration::from_millis(milliseconds as u64);
    let Some((threads, _)) = row.split_once(' ') else {
        return Err(format!("`{row}` is not a number of threads"));
    };
    let threads = match threads.parse() {
        Ok(threads) => threads,
        Err(error) => return Err(format!("{threads}: {error}")),
    };
    if row == SECCOMP {
        let installed = install_filter();
        installed.map_err(|error| format!("seccomp: {error}"))?;
    }
    calls::settle();
    for contender in CONTENDERS {
        let before = counter::state().statistics;
        let rate = measure(contender.read, threads, length);
        let nanos = rate.seconds * 1e9 / rate.reads;
        say(row, contender.name, nanos);
        if contender.name == COUNTER {
            let after = counter::state().statistics;
            let segments = (after.segments - before.segments) as f64;
            let vdso_reads = (after.vdso_reads - before.vdso_reads) as f64;
            say(row, SEGMENTS, segments / rate.seconds);
            say(row, ASKED, vdso_reads / rate.reads * 1e6);
        }
    }
    Ok(())
}

/// How many reads all threads made, and in how many seconds.
struct Rate {
    reads: f64,
    seconds: f64,
}

fn measure(read: fn(usize), threads: usize, length: Duration) -> Rate {
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
        let mut running = Vec::new();
        for _ in 0..threads {
            running.push(scope.spawn(work));
        }
        barrier.wait();
        let start = Instant::now();
        barrier.wait();
        thread::sleep(length);
        end.store(true, Ordering::Relaxed);
        let mut reads = 0;
        for thread in running {
            reads += thread.join().unwrap_or(0);
        }
        Rate {
            reads: reads as f64,
            seconds: start.elapsed().as_secs_f64(),
        }
    })
}

/// Allows 450 system calls by number, as a container's filter does.
fn install_filter() -> Result<(), Box<dyn std::error::Error>> {
    let mut rules = BTreeMap::new();
    for number in 0..450 {
        rules.insert(number, Vec::new());
    }
    let deny = SeccompAction::Errno(libc::EPERM as u32);
    let allow = SeccompAction::Allow;
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, deny, allow, arch)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(apply_filter(&program)?)
}

/// Returns the million reads per second of all threads together.
pub fn table(samples: &Samples) -> Table {
    let mut head = vec!["million reads per second"];
    head.extend(CONTENDERS.map(|contender| contender.name));
    head.push(SEGMENTS);
    head.push(ASKED);
    let mut table = Table::new("peers-scale", head);
    for row in ROWS {
        let mut cells = Vec::new();
        for contender in CONTENDERS {
            let nanos = samples.nanos(row, Spacing::Isolated, contender.name);
            let rate = nanos.map(|nanos| 1e3 / nanos);
            let cell = rate.map(|rate| format!("{rate:.1}"));
            cells.push(cell);
        }
        cells.push(samples.isolated(row, SEGMENTS, 0));
        cells.push(samples.isolated(row, ASKED, 0));
        table.add(row, cells);
    }
    table
}
