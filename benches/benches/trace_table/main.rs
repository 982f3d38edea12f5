//! `cargo bench --bench trace_table`: what tracing costs, in the rows of the table that came with the kernel's call ops.
//!
//! The rows and the columns are those of the cover letter of "arm64/ftrace: Add support for DYNAMIC_FTRACE_WITH_CALL_OPS" (Mark Rutland,
//! January 2023; Linux 6.3): so many tracers of the site that is called, relevant ones, and so many of another, irrelevant ones, once by
//! call ops and once by one list of all. A tracer does nothing, as there; the call is `time()`, the cheapest read. Each row of each round
//! is a process of its own.

mod contention;
mod list;
mod table;

use std::hint::black_box;
use std::process::ExitCode;

use list::ListSite;
use vdso_time_benches::harness::arguments::{self, Arguments};
use vdso_time_benches::harness::report::Report;
use vdso_time_benches::harness::samples::{self, Samples};
use vdso_time_benches::harness::{Contender, Row};
use vdso_time_trace::{Event, Link, Select, Trace, Tracer, attach, traced};

/// Relevant and irrelevant tracers, as published.
const ROWS: &[[usize; 2]] = &[
    [0, 0],
    [0, 1],
    [0, 2],
    [0, 10],
    [0, 100],
    [1, 1],
    [1, 2],
    [1, 10],
    [1, 100],
    [1, 0],
    [2, 0],
    [10, 0],
    [100, 0],
];

const MOST: usize = 100;

/// What traces: nothing is done. It is called by a pointer that the optimiser does not see through.
struct Nothing;

impl Trace for Nothing {
    fn event(&self, _: &Event) {}
}

static NOTHING: Nothing = Nothing;
static RELEVANT: [Tracer; MOST] = [const { Tracer::new(&NOTHING) }; MOST];
static IRRELEVANT: [Tracer; MOST] = [const { Tracer::new(&NOTHING) }; MOST];
static LINKS: [Link; 2 * MOST] = Link::array();

static LISTED: ListSite = ListSite::new("relevant");
static LISTED_ELSEWHERE: ListSite = ListSite::new("irrelevant");

/// The other site.
fn elsewhere() -> i64 {
    traced!("irrelevant", vdso_time::time())
}

fn name([relevant, irrelevant]: [usize; 2]) -> String {
    format!("{relevant}/{irrelevant}")
}

fn row(name: &str) -> Row {
    let contenders = vec![
        Contender::new("bare", || {
            black_box(vdso_time::time());
        }),
        Contender::new("list", || {
            black_box(LISTED.call(vdso_time::time));
        }),
        Contender::new("call ops", || {
            black_box(traced!("relevant", vdso_time::time()));
        }),
    ];
    Row { name: name.into(), contenders }
}

/// Attaches the row's tracers, and measures.
fn child(asked: &[String]) -> Result<(), String> {
    let [first, row_name] = asked else { return Err(format!("{asked:?}: not one row")) };
    if first == contention::ASKED {
        return contention::child(row_name);
    }
    let found = ROWS.iter().find(|row| name(**row) == *row_name);
    let &[relevant, irrelevant] = found.ok_or_else(|| format!("{row_name}: no such row"))?;
    black_box(elsewhere());
    let attach = |tracer, site| attach(tracer, Select::Name(site), &LINKS).map_err(|full| full.to_string());
    for tracer in &IRRELEVANT[..irrelevant] {
        attach(tracer, "irrelevant")?;
        LISTED_ELSEWHERE.attach(tracer);
    }
    for tracer in &RELEVANT[..relevant] {
        attach(tracer, "relevant")?;
        LISTED.attach(tracer);
    }
    samples::print(&[row(row_name)], asked)
}

fn parent(arguments: &Arguments) -> Result<(), String> {
    let processes = arguments.effort.choose(1, 9, 25);
    let rounds = arguments.effort.choose(1, 60, 240);
    let rows: Vec<[usize; 2]> = ROWS.iter().copied().filter(|row| arguments.wants(&name(*row))).collect();
    let mut samples = Samples::default();
    for row in &rows {
        samples.replace(Samples::collect(processes, rounds, &[&name(*row)])?);
    }
    let mut report = Report::new("trace_table");
    report.tables.push(table::published(&rows, &samples));
    if arguments.filters.is_empty() {
        report.tables.push(contention::table(processes)?);
    }
    report.finish(arguments, env!("CARGO_TARGET_TMPDIR"))
}

fn main() -> ExitCode {
    arguments::main(parent, child)
}
