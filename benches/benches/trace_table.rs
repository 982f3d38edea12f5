//! `cargo bench --bench trace_table`: what tracing costs, in the rows of the table that came with the
//! kernel's call ops.
//!
//! The rows are those of the cover letter of "arm64/ftrace: Add support for
//! DYNAMIC_FTRACE_WITH_CALL_OPS" (Mark Rutland, January 2023; Linux 6.3): the tracers of the called
//! site, and the tracers of another site. A tracer does nothing; the call is `time()`.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::OnceLock;

use vdso_time_benches::calls::keep;
use vdso_time_benches::harness::command::{self, Arguments};
use vdso_time_benches::harness::document::{Report, Table};
use vdso_time_benches::harness::samples::{self, OURS, Samples};
use vdso_time_benches::harness::{Contender, Row, Spacing};
use vdso_time_trace::{Read, Site, Trace, Tracer, sites, traced};

/// Relevant and irrelevant tracers, and the published overheads in nanoseconds: call ops, list.
const ROWS: [([usize; 2], Option<[f64; 2]>); 10] = [
    ([0, 0], None),
    ([0, 100], None),
    ([1, 1], Some([1.86, 63.73])),
    ([1, 2], Some([1.87, 74.15])),
    ([1, 10], Some([1.86, 236.92])),
    ([1, 100], Some([1.87, 1063.38])),
    ([1, 0], Some([1.86, 13.37])),
    ([2, 0], Some([64.08, 63.62])),
    ([10, 0], Some([185.87, 226.22])),
    ([100, 0], Some([1034.56, 1031.99])),
];

const BARE: &str = "bare";
const LIST: &str = "list";

/// A tracer that does nothing. The compiler cannot see through the pointer to it.
struct Nothing;

impl Trace for Nothing {
    fn event(&self, _: &'static Site, _: Option<i64>) {}
}

static TRACER: Tracer = Tracer::new(&Nothing);

/// Several tracers of one site.
struct Group(Vec<&'static Tracer>);

impl Trace for Group {
    fn event(&self, site: &'static Site, nanos: Option<i64>) {
        self.0.iter().for_each(|tracer| tracer.call(site, nanos));
    }
}

/// The method before call ops: one list of all tracers, and the sites of each. A traced site walks
/// the list. A look-up by index is cheaper than ftrace's hash table, which favours the list.
static TRACERS: OnceLock<Vec<(&Tracer, [bool; 2])>> = OnceLock::new();
static SITE: Site = Site::new("relevant", "time()", file!(), line!());

#[inline]
fn listed<R: Read>(read: impl Fn() -> R) -> R {
    match TRACERS.get() {
        Some(tracers) => walk(tracers, read),
        None => read(),
    }
}

#[cold]
#[inline(never)]
fn walk<R: Read>(tracers: &[(&Tracer, [bool; 2])], read: impl Fn() -> R) -> R {
    let answer = read();
    for (tracer, _) in tracers.iter().filter(|(_, sites)| sites[black_box(0)]) {
        tracer.call(&SITE, answer.nanos());
    }
    answer
}

fn name([relevant, irrelevant]: [usize; 2]) -> String {
    format!("{relevant}/{irrelevant}")
}

fn row(name: &str) -> Row {
    let contenders = [
        Contender::new(BARE, || keep(vdso_time::time())),
        Contender::new(LIST, || keep(listed(vdso_time::time))),
        Contender::new(OURS, || keep(traced!("relevant", vdso_time::time()))),
    ];
    Row::new(name, contenders)
}

/// Attaches the tracers of a row, and measures.
fn child(asked: &[String]) -> Result<(), String> {
    let [_, asked_row] = asked else { return Err(format!("{asked:?}: not one row")) };
    let found = ROWS.iter().find(|(tracers, _)| name(*tracers) == *asked_row);
    let &([relevant, irrelevant], _) = found.ok_or("no such row")?;
    keep(traced!("irrelevant", vdso_time::time()));
    let mut list = Vec::new();
    for (index, (count, name)) in [(irrelevant, "irrelevant"), (relevant, "relevant")].into_iter().enumerate()
    {
        list.extend([(&TRACER, [index == 1, index == 0])].repeat(count));
        let group = || Tracer::new(Box::leak(Box::new(Group(vec![&TRACER; count]))));
        let tracer = match count {
            0 => None,
            1 => Some(&TRACER),
            _ => Some(&*Box::leak(Box::new(group()))),
        };
        for site in sites().iter().filter(|site| site.name() == name) {
            site.set_tracer(tracer);
        }
    }
    if relevant > 0 {
        let _ = TRACERS.set(list); // it is empty
    }
    samples::print(&[row(asked_row)], asked)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let names = ROWS.map(|(tracers, _)| name(tracers));
    let names: Vec<String> = names.into_iter().filter(|name| arguments.wants(name)).collect();
    let one = |samples: &mut Samples, asked: &[&str]| {
        let (rounds, names) = asked.split_first().ok_or("the number of rounds is missing")?;
        // The tracers of a row stay attached, so a row has a process of its own.
        names.iter().try_for_each(|name| samples.add_child(&[rounds, name]))
    };
    let samples = Samples::collect(arguments, &names, one, |_, _| false)?;
    Ok(Report { tables: vec![table(&samples)], ..Report::default() })
}

/// The overheads over the bare call of the same process: isolated, back to back.
fn table(samples: &Samples) -> Table {
    let head = ["relevant", "irrelevant", "call ops, ns", "list, ns", "call ops / list", "published"];
    let mut table = Table::new("trace", &head);
    for (tracers, published) in ROWS {
        let row = name(tracers);
        let overhead = |spacing, contender| {
            let bare = samples.nanos(&row, spacing, BARE)?;
            Some(bare * (samples.ratio(&row, spacing, [contender, BARE])? - 1.0))
        };
        let join = |cell: &dyn Fn(Spacing) -> Option<String>| {
            Spacing::ALL.into_iter().filter_map(cell).collect::<Vec<_>>().join(", ")
        };
        let nanos =
            |contender| join(&|spacing| Some(format!("{:.2}", overhead(spacing, contender)?.max(0.0))));
        let ratio = |spacing| Some(format!("{:.3}", overhead(spacing, OURS)? / overhead(spacing, LIST)?));
        let mut line = tracers.map(|count| count.to_string()).to_vec();
        line.extend([nanos(OURS), nanos(LIST)]);
        line.extend(match published {
            Some([ops, list]) => [join(&ratio), format!("{ops} / {list} = {:.3}", ops / list)],
            None => [String::new(), String::new()],
        });
        if samples.of(&row, Spacing::Isolated, BARE).is_some() {
            table.rows.push(line);
        }
    }
    table
}

fn main() -> ExitCode {
    command::main(&[], child, parent)
}
