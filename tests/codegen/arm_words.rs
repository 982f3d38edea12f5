//! The promise: a program for a CPU older than ARMv7 stays one when it is linked with this crate.

use test_support::program;

use crate::{FLAGS, place, source};

#[test]
fn the_assembly_does_not_mark_an_object_for_armv5_as_armv7() {
    program::emit_for_armv5(&source(), FLAGS, &place("armv5te.o"));
}
