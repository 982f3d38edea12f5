//! The promise: a program for a CPU older than ARMv7 stays one when it is linked with this crate.

use std::process::Command;

use test_support::{not_run_here, program};

use crate::{FLAGS, place, source};

const TRIPLE: &str = "armv7-unknown-linux-gnueabihf";

#[test]
fn the_assembly_does_not_mark_an_object_for_armv5_as_armv7() {
    if let Err(why) = program::find_standard_library(TRIPLE) {
        return not_run_here(TRIPLE, why);
    }
    let object = place("armv5te.o");
    // The compiler at hand has the libraries of this target, not of an older one.
    let older = ["-Ctarget-cpu=arm926ej-s", "-Ctarget-feature=-v7,-thumb2,-v6t2,-v6k,-v6"];
    program::emit("obj", TRIPLE, &source().join("lib.rs"), &[FLAGS, &older].concat(), &object);
    let output = match Command::new("readelf").arg("-A").arg(&object).output() {
        Ok(output) => String::from_utf8(output.stdout).expect("UTF-8"),
        Err(error) => return not_run_here("readelf", format!("readelf: {error}")),
    };
    let marks: Vec<_> =
        output.lines().filter_map(|line| line.trim().strip_prefix("Tag_CPU_arch: ")).collect();
    assert!(!marks.is_empty() && marks.iter().all(|mark| *mark == "v5TE"), "{marks:?}\n{output}");
}
