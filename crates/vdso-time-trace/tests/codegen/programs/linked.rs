//! Prints the names of its sites, and the number of counted reads.

use vdso_time_trace::{Counter, Link, Select, Site, Tracer, attach, report, sites, traced};

static CALLS: [Counter; 16] = [const { Counter::new() }; 16];
static TRACER: Tracer = Tracer::new(&CALLS);
static LINKS: [Link; 16] = Link::array();

#[allow(dead_code, reason = "its site is listed all the same")]
fn never_called() -> i64 {
    traced!("program/never called", vdso_time::time())
}

fn main() {
    attach(&TRACER, Select::All, &LINKS).unwrap();
    traced!("program/called", vdso_time::time());
    library::called();
    library::inlined();
    let mut names: Vec<_> = sites().iter().map(Site::name).collect();
    names.sort_unstable();
    println!("{}", names.join(", "));
    println!("{} counted", report(&CALLS).rows().map(|(_, calls)| calls).sum::<u64>());
}
