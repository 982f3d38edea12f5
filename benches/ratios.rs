//! `cargo bench --bench ratios`: what a call costs, compared with the vDSO's own function, libc,
//! std and the system call.

use std::process::ExitCode;

use vdso_time_benches::calls::keep;
use vdso_time_benches::calls::slow_reads::{self, MAKER, RESTED, SPARSE, VDSO, WITHOUT_COUNTER};
use vdso_time_benches::calls::{self, COUNTERS, LINE, SYSCALL, SYSCALL_TIME, TICKS, TIME_NOW};
use vdso_time_benches::harness::command::Arguments;
use vdso_time_benches::harness::limits::{self, Limit, both, isolated};
use vdso_time_benches::harness::report::Report;
use vdso_time_benches::harness::samples::{self, DIRECT, OURS, Samples};
use vdso_time_benches::harness::{self, Contender, Row, Spacing};
use vdso_time_benches::pages::Table;
use vdso_time_trace::{Site, Trace, Tracer, sites, traced};

const LIMITS: &[Limit] = &[
    both("time()", DIRECT, 1.03),
    both(TIME_NOW, SYSCALL, 0.20),
    both("gettimeofday()", DIRECT, 1.01),
    both("clock_gettime(REALTIME)", DIRECT, 1.01),
    both("clock_gettime(MONOTONIC)", DIRECT, 1.01),
    both("clock_gettime(BOOTTIME)", DIRECT, 1.01),
    both("clock_gettime(TAI)", DIRECT, 1.01),
    both("clock_gettime(MONOTONIC_RAW)", DIRECT, 1.01),
    isolated("clock_gettime(REALTIME_COARSE)", DIRECT, 1.08),
    isolated("clock_gettime(MONOTONIC_COARSE)", DIRECT, 1.08),
    isolated("clock_gettime(REALTIME_COARSE)", "libc", 0.90),
    isolated("clock_gettime(MONOTONIC_COARSE)", "libc", 0.90),
    both("clock_getres(MONOTONIC)", DIRECT, 1.03),
    both(SYSCALL_TIME, "libc", 1.01),
    both("getcpu()", DIRECT, 1.03),
    // On every CPU, turning the bare counter into a time costs a subtraction, a multiplication, an
    // addition and a comparison. So the floor is the counter with these, not the bare counter.
    both("CounterMonotonicUnordered::now()", LINE, 1.02),
    both("CounterMonotonicUnordered: elapsed()", LINE, 1.03),
    both("CounterMonotonic::now()", LINE, 1.02),
    both("CounterMonotonic: elapsed()", LINE, 1.03),
    both("CounterRealtimeUnordered::now()", SYSCALL, 0.14),
    isolated(MAKER, VDSO, 8.0),
    // Between reads of 1 ms the caches stay warm, and a read is short: there is no limit.
    isolated(SPARSE[1].0, RESTED, 1.2),
    isolated(SPARSE[2].0, RESTED, 1.2),
    both(WITHOUT_COUNTER[0], VDSO, 1.05),
    both(WITHOUT_COUNTER[1], VDSO, 1.05),
];

/// The contenders of the tables.
const CALLERS: [&str; 5] = [OURS, DIRECT, "libc", "std", SYSCALL];
/// The chart shows the first three. A clock on the CPU's counter has no system call of its own.
const CLOCKS: [&str; 5] = [DIRECT, TICKS, LINE, SYSCALL, NANOS];
const NANOS: &str = "ns";
const RATIO: &str = "vdso-time's time / the other's";

/// The row of this crate's `time()` with and without a traced site, and of an empty call.
const TRACED: &str = "time(), traced";
const BARE: &str = "bare";
const EMPTY: &str = "empty call";
/// The traced sites, and the published overhead of ftrace's call ops, in empty calls: with a tracer
/// a call takes 2.81 ns instead of 0.95.
const SITES: [(&str, &str); 2] = [(NO_TRACER, ""), (A_TRACER, "1.96")];
const NO_TRACER: &str = "no tracer";
const A_TRACER: &str = "a tracer";

struct Nothing;

impl Trace for Nothing {
    fn event(&self, _: &'static Site, _: Option<i64>) {}
}

/// The compiler cannot see through the pointer to it.
static TRACER: Tracer = Tracer::new(&Nothing);

/// Does nothing. The compiler keeps the call because of the black box.
#[inline(never)]
fn empty() {
    keep(());
}

fn traced_row() -> Row {
    for site in sites() {
        if site.name() == "on" {
            site.set_tracer(Some(&TRACER));
        }
    }
    let contenders = [
        Contender::new(NO_TRACER, || keep(traced!("off", vdso_time::time()))),
        Contender::new(A_TRACER, || keep(traced!("on", vdso_time::time()))),
        Contender::new(EMPTY, empty),
        Contender::new(BARE, || keep(vdso_time::time())),
    ];
    Row::new(TRACED, contenders)
}

fn child(asked: &[String]) -> Result<(), String> {
    if asked.iter().any(|name| WITHOUT_COUNTER.contains(&&**name)) {
        return samples::print(&slow_reads::without_counter(), asked);
    }
    let mut rows = calls::rows();
    rows.push(traced_row());
    calls::settle();
    samples::print(&rows, asked)?;
    slow_reads::print(asked)
}

/// Measures rows, the clocks without a counter in a process of their own. `asked` has the number of
/// rounds, and then the names of the rows.
fn measure(samples: &mut Samples, asked: &[&str]) -> Result<(), String> {
    let (rounds, names) = asked.split_first().ok_or("no rows are asked for")?;
    let mut without_counter = vec![*rounds];
    let mut others = vec![*rounds];
    for name in names {
        if WITHOUT_COUNTER.contains(name) {
            without_counter.push(name);
        } else {
            others.push(name);
        }
    }
    for asked in [others, without_counter] {
        if asked.len() > 1 {
            samples.add_child(&asked)?;
        }
    }
    Ok(())
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let mut calls = Vec::new();
    let mut clocks = Vec::new();
    for row in calls::rows() {
        if !arguments.wants(&row.name) {
            continue;
        }
        if COUNTERS.contains(&&*row.name) {
            clocks.push(row.name);
        } else {
            calls.push(row.name);
        }
    }
    let mut names = [calls.as_slice(), &clocks].concat();
    for row in slow_rows().chain([TRACED]) {
        if arguments.wants(row) {
            names.push(row.into());
        }
    }
    let is_noisy = |samples: &Samples, row: &str| limits::is_noisy(LIMITS, samples, row);
    let samples = Samples::collect(arguments, &names, measure, is_noisy)?;
    let (limits, missed) = limits::table("limits", LIMITS, &samples, arguments);
    let nanos = |row: &str, contender| samples.isolated(row, contender, 1);
    let ratio = |row: &str, contender| match contender {
        NANOS => samples.both(row, OURS, 1),
        other => samples.cell(row, [OURS, other]),
    };
    let tables = vec![
        Table::of("calls", "isolated, ns", &calls, &CALLERS, nanos),
        Table::of("ratios", RATIO, &calls, &CALLERS[1..], ratio),
        Table::of("counters", RATIO, &clocks, &CLOCKS, ratio),
        slow_table(&samples),
        trace_table(&samples),
        limits,
    ];
    Ok(Report {
        tables,
        missed,
        notes: calls::notes(),
    })
}

fn slow_rows() -> impl Iterator<Item = &'static str> {
    slow_reads::names().into_iter().chain(WITHOUT_COUNTER)
}

/// Returns the reads that no segment answers immediately, and the ratio to a read of the vDSO.
fn slow_table(samples: &Samples) -> Table {
    let head = ["isolated, ns", OURS, VDSO, RESTED, "/ clock_gettime"];
    let mut table = Table::new("slow", head);
    for row in slow_rows() {
        let mut ratios = Vec::new();
        for spacing in Spacing::ALL {
            if let Some(ratio) = samples.ratio(row, spacing, [OURS, VDSO]) {
                ratios.push(format!("{ratio:.2}"));
            }
        }
        let ours = samples.isolated(row, OURS, 0);
        let vdso = samples.isolated(row, VDSO, 0);
        let rested = samples.isolated(row, RESTED, 0);
        let ratios = ratios.join(", ");
        table.add(row, [ours, vdso, rested, Some(ratios)]);
    }
    table
}

/// Returns the overhead of a traced site over the bare call: in nanoseconds, and in empty calls of
/// a loop, which is the unit of the published figure from another machine.
fn trace_table(samples: &Samples) -> Table {
    let head = ["overhead, empty calls", "vdso-time-trace", "ftrace", "ns"];
    let mut table = Table::new("trace", head);
    for (site, published) in SITES {
        let Some(isolated) = overhead(samples, site, Spacing::Isolated) else {
            continue;
        };
        let Some(back_to_back) = overhead(samples, site, Spacing::BackToBack) else {
            continue;
        };
        let empty = samples.nanos(TRACED, Spacing::BackToBack, EMPTY);
        let calls = empty.map(|empty| format!("{:.2}", back_to_back / empty));
        let nanos = format!("{isolated:.2}, {back_to_back:.2}");
        table.add(site, [calls, Some(published.into()), Some(nanos)]);
    }
    table
}

/// Returns the nanoseconds that a traced site adds to the bare call.
fn overhead(samples: &Samples, site: &str, spacing: Spacing) -> Option<f64> {
    let ratio = samples.ratio(TRACED, spacing, [site, BARE])?;
    let bare = samples.nanos(TRACED, spacing, BARE)?;
    let added = bare * (ratio - 1.0);
    Some(added.max(0.0))
}

fn main() -> ExitCode {
    harness::main(child, parent)
}
