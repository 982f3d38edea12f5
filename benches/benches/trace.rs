//! `cargo bench --bench trace`: what a traced `time()` costs more than the bare call.

use std::process::ExitCode;

use vdso_time_benches::calls::keep;
use vdso_time_benches::harness::command::{self, Arguments};
use vdso_time_benches::harness::document::{Report, Table};
use vdso_time_benches::harness::samples::{self, Samples};
use vdso_time_benches::harness::{Contender, Row, Spacing};
use vdso_time_trace::{Site, Trace, Tracer, sites, traced};

const ROW: &str = "time()";
const BARE: &str = "bare";
/// The traced sites, and the published overhead in nanoseconds of ftrace's call ops.
const SITES: [(&str, &str); 2] = [("no tracer", ""), ("a tracer", "1.86")];

struct Nothing;

impl Trace for Nothing {
    fn event(&self, _: &'static Site, _: Option<i64>) {}
}

/// The compiler cannot see through the pointer to it.
static TRACER: Tracer = Tracer::new(&Nothing);

fn child(asked: &[String]) -> Result<(), String> {
    let row = Row::new(
        ROW,
        [
            Contender::new(SITES[0].0, || keep(traced!("off", vdso_time::time()))),
            Contender::new(SITES[1].0, || keep(traced!("on", vdso_time::time()))),
            Contender::new(BARE, || keep(vdso_time::time())),
        ],
    );
    for site in sites().iter().filter(|site| site.name() == "on") {
        site.set_tracer(Some(&TRACER));
    }
    samples::print(&[row], asked)
}

fn parent(arguments: &Arguments) -> Result<Report, String> {
    let samples = Samples::collect(arguments, &[ROW.into()], Samples::add_child, |_, _| false)?;
    let mut table = Table::new("trace", &["a site with", "ns", "ftrace, ns"]);
    for (site, published) in SITES {
        let overhead = |spacing| {
            let ratio = samples.ratio(ROW, spacing, [site, BARE])?;
            Some(format!("{:.2}", (samples.nanos(ROW, spacing, BARE)? * (ratio - 1.0)).max(0.0)))
        };
        let overheads: Vec<String> = Spacing::ALL.into_iter().filter_map(overhead).collect();
        table.rows.push(vec![site.into(), overheads.join(", "), published.into()]);
    }
    Ok(Report { tables: vec![table], ..Report::default() })
}

fn main() -> ExitCode {
    command::main(&[], child, parent)
}
