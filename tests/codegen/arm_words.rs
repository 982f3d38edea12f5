//! The promise: a program for a CPU older than ARMv7 can be compiled, and stays one, in ARM and in
//! Thumb mode.

use test_support::program;

use crate::{FLAGS, place, source};

#[test]
fn the_assembly_does_not_mark_an_object_for_armv5_as_armv7() {
    for mode in [&[][..], &["-Ctarget-feature=+thumb-mode"]] {
        program::emit_for_armv5(&source(), &[FLAGS, mode].concat(), &place("armv5te.o"));
    }
}
