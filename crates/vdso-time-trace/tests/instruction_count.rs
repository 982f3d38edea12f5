//! What a read at a site costs, in instructions: those of a turn of a loop, executed one by one, less those of the same loop over the
//! bare call.
//!
//! `cargo test -p vdso-time-trace --features enabled --test instruction_count -- --nocapture` prints them.

#![cfg(all(feature = "enabled", target_arch = "x86_64", target_pointer_width = "64"))]

#[path = "support/build.rs"]
mod build;

use test_support::cost::Cost;
use test_support::not_run_here;
use test_support::stepper::{Section, Stepper};

/// The loops of `tests/support/counted.rs`: the bare one, then by relevant and irrelevant tracers.
const LOOPS: [&str; 6] = ["bare", "0/0", "0/100", "1/0", "1/100", "2/0"];

/// A turn, from loops of 4 and of 8.
fn turn(four: &Section, eight: &Section) -> Cost {
    let per_turn = |of: fn(&Cost) -> i64| {
        let more = of(&eight.cost) - of(&four.cost);
        assert_eq!(more % 4, 0, "the turns of a loop differ");
        more / 4
    };
    Cost {
        instructions: per_turn(|cost| cost.instructions),
        branches: per_turn(|cost| cost.branches),
        checks: per_turn(|cost| cost.checks),
    }
}

#[test]
fn a_site_costs_a_load_and_a_branch_and_one_tracer_the_same_whatever_others_there_are() {
    let program = build::compile("counted", &["vdso-time-trace/enabled"], &[], "link");
    let start = |program: std::path::PathBuf| {
        Stepper::start(std::process::Command::new(program)).map_err(|error| format!("ptrace: {error}"))
    };
    let stepper = match program.and_then(start) {
        Ok(stepper) => stepper,
        Err(why) => return not_run_here("ptrace", why),
    };
    let turns = LOOPS.map(|_| {
        let [four, eight] = [(); 2].map(|()| stepper.section().unwrap());
        assert_eq!((four.entries.len(), eight.entries.len()), (4, 8), "not one read a turn");
        turn(&four, &eight)
    });
    let more =
        turns.map(|turn| [turn.instructions - turns[0].instructions, turn.branches - turns[0].branches]);
    println!("relevant/irrelevant, instructions and branches more than the bare call");
    for (name, [instructions, branches]) in LOOPS.iter().zip(more) {
        println!("{name:6} {instructions:+4} {branches:+3}");
    }
    let [_, none, none_but_irrelevant, one, one_and_irrelevant, two] = more;
    // A load, the test of what was loaded, and the branch.
    assert_eq!(none, [3, 1]);
    assert_eq!(none_but_irrelevant, none);
    assert_eq!(one_and_irrelevant, one);
    // That branch, and whether the read is to be timed.
    assert_eq!(one[1], 2);
    assert!(one[0] < 40 && one[0] < two[0], "{more:?}");
}
