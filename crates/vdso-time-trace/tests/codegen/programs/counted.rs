//! Loops of reads between breakpoints: bare, and at a site with some tracers.

use std::arch::asm;
use std::hint::black_box;

use vdso_time_trace::{Link, Select, Site, Trace, Tracer, attach, detach, traced};

struct Nothing;

impl Trace for Nothing {
    fn event(&self, _: &'static Site, _: Option<i64>) {}
}

static TRACERS: [Tracer; 100] = [const { Tracer::new(&Nothing) }; 100];
static LINKS: [Link; 200] = Link::array();

#[inline(never)]
fn bare(turns: usize) {
    for _ in 0..turns {
        black_box(vdso_time::time());
    }
}

#[inline(never)]
fn at_a_site(turns: usize) {
    for _ in 0..turns {
        black_box(traced!("relevant", vdso_time::time()));
    }
}

fn elsewhere() -> i64 {
    traced!("irrelevant", vdso_time::time())
}

#[inline(never)]
fn between_breakpoints(run: fn(usize), turns: usize) {
    // SAFETY: the tracer continues the program after a breakpoint.
    unsafe { asm!("int3") };
    black_box(run)(turns);
    // SAFETY: the tracer continues the program after a breakpoint.
    unsafe { asm!("int3") };
}

fn run(run: fn(usize)) {
    between_breakpoints(run, 4);
    between_breakpoints(run, 8);
}

fn main() {
    // The first call resolves the vDSO.
    black_box(elsewhere());
    run(bare);
    for counts in [[0, 0], [0, 100], [1, 0], [1, 100], [2, 0]] {
        for (name, count) in ["relevant", "irrelevant"].into_iter().zip(counts) {
            for tracer in &TRACERS[..count] {
                attach(tracer, Select::Name(name), &LINKS).unwrap();
            }
        }
        run(at_a_site);
        for tracer in &TRACERS {
            detach(tracer, Select::All);
        }
    }
}
