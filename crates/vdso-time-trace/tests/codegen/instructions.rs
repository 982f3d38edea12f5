//! The instructions of a read at a site: those of a turn of a loop, executed one by one, less those
//! of the same loop over the bare call.

use std::process::Command;

use test_support::not_run_here;
use test_support::stepper::Stepper;

use crate::{compile, libraries};

/// The loops of `programs/counted.rs`: the bare one, then by relevant and irrelevant tracers.
const LOOPS: [&str; 6] = ["bare", "0/0", "0/100", "1/0", "1/100", "2/0"];

#[test]
fn instructions_of_a_site_do_not_depend_on_irrelevant_tracers() {
    let program = compile(&libraries("vdso-time-trace/enabled"), "counted.rs", &[], "counted");
    let stepper = match Stepper::start(Command::new(program)) {
        Ok(stepper) => stepper,
        Err(error) => return not_run_here("ptrace", format!("ptrace: {error}")),
    };
    // The instructions and the branches of a turn, from loops of 4 and of 8.
    let turns = LOOPS.map(|name| {
        let [four, eight] = [(); 2].map(|()| stepper.section().unwrap());
        assert_eq!((four.entries.len(), eight.entries.len()), (4, 8), "{name}: not one read in a turn");
        let cost = eight.cost.less(four.cost);
        [cost.instructions, cost.branches].map(|of_four| {
            assert_eq!(of_four % 4, 0, "{name}: the turns of a loop differ");
            of_four / 4
        })
    });
    let more = turns.map(|turn| [turn[0] - turns[0][0], turn[1] - turns[0][1]]);
    println!("relevant/irrelevant tracers: instructions and branches more than the bare call");
    for (name, [instructions, branches]) in LOOPS.iter().zip(more) {
        println!("{name:6} {instructions:+4} {branches:+3}");
    }
    let [_, none, none_of_100, one, one_of_101, two] = more;
    assert_eq!([none, none_of_100], [[3, 1]; 2], "a load, a test and a branch");
    assert_eq!(one_of_101, one);
    assert!(one[0] < 30 && one[0] < two[0], "{more:?}");
}
