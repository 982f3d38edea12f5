//! What a shared counter costs: threads that read at once, and count in one place or each in its own.

#![allow(unsafe_code, reason = "libc is called here")]

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use vdso_time_benches::harness::process;
use vdso_time_benches::harness::report::Table;
use vdso_time_benches::harness::stats::median;
use vdso_time_trace::{Counter, PerSite, Select, Tracer, attach, traced};

use crate::LINKS;

/// What a child is asked for, before the name of a row.
pub(crate) const ASKED: &str = "contention";

static ONE: Counter = Counter::new();
static COUNT_ALL: Tracer = Tracer::new(&ONE);
static EACH: PerSite<Counter, 16> = PerSite::new();
static COUNT_EACH: Tracer = Tracer::new(&EACH);

/// A row: what counts, and at which sites the threads read.
struct Way {
    name: &'static str,
    tracer: Option<&'static Tracer>,
    sites: &'static [usize],
}

const WAYS: &[Way] = &[
    Way { name: "1 thread, not traced", tracer: None, sites: &[0] },
    Way { name: "1 thread, a counter", tracer: Some(&COUNT_ALL), sites: &[0] },
    Way { name: "1 thread, a counter per site", tracer: Some(&COUNT_EACH), sites: &[0] },
    Way { name: "2 threads, not traced", tracer: None, sites: &[0, 1] },
    Way { name: "2 threads, one counter", tracer: Some(&COUNT_ALL), sites: &[0, 1] },
    Way { name: "2 threads at one site, a counter per site", tracer: Some(&COUNT_EACH), sites: &[0, 0] },
    Way { name: "2 threads at two sites, a counter per site", tracer: Some(&COUNT_EACH), sites: &[0, 1] },
];

fn read_many(site: usize, calls: u32) {
    for _ in 0..calls {
        black_box(if site == 0 {
            traced!("contended/0", vdso_time::time())
        } else {
            traced!("contended/1", vdso_time::time())
        });
    }
}

/// Moves this thread to a CPU of its own, if there are as many: else the kernel may run all on one, and nothing is contended.
fn pin(thread: usize) {
    // SAFETY: all zeros are no CPUs.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: there are more places than threads.
    unsafe { libc::CPU_SET(thread, &mut cpus) };
    // SAFETY: the kernel reads the set.
    unsafe { libc::sched_setaffinity(0, size_of_val(&cpus), &raw const cpus) };
}

/// Prints the nanoseconds of a read.
pub(crate) fn child(name: &str) -> Result<(), String> {
    /// A batch is short beside the time between two interrupts; there are so many that the threads read at once for most of them.
    const CALLS: u32 = 1_000;
    const BATCHES: usize = 2_000;
    let way = WAYS.iter().find(|way| way.name == name).ok_or_else(|| format!("{name}: no such row"))?;
    if let Some(tracer) = way.tracer {
        attach(tracer, Select::Name("contended/*"), &LINKS).map_err(|full| full.to_string())?;
    }
    let start = Barrier::new(way.sites.len());
    let timed = &|thread: usize, site: usize| {
        pin(thread);
        start.wait();
        let batch = || {
            let start = Instant::now();
            read_many(site, CALLS);
            start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        };
        median(&(0..BATCHES).map(|_| batch()).collect::<Vec<_>>())
    };
    let nanos = thread::scope(|scope| {
        let threads: Vec<_> = way
            .sites
            .iter()
            .enumerate()
            .map(|(thread, site)| scope.spawn(move || timed(thread, *site)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(f64::NAN)).fold(0.0, f64::max)
    });
    println!("{nanos}");
    Ok(())
}

/// The medians of some processes.
pub(crate) fn table(processes: usize) -> Result<Table, String> {
    let mut rows = Vec::new();
    for way in WAYS {
        let mut samples = Vec::new();
        for _ in 0..processes {
            let printed = process::child(&[ASKED, way.name])?;
            samples.push(printed.trim().parse().map_err(|error| format!("{printed}: {error}"))?);
        }
        rows.push(vec![way.name.to_string(), format!("{:.1}", median(&samples))]);
    }
    Ok(Table { name: "contention", head: ["who reads", "ns a read"].map(str::to_string).to_vec(), rows })
}
