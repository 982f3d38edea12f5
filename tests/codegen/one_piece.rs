//! The promise: an image of the process's own format is parsed and searched by code in one piece,
//! which a CPU fetches ahead of its use. A call of another function, as of memcpy, makes cold
//! discovery slower.

use std::fs;

use test_support::{cost, not_run_here, program};

use crate::{FLAGS, place, source};

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// What an image does not need that the kernel's linker scripts made, and the search of the program
/// headers, which Rust 1.85 does not inline.
const OUT_OF_LINE: [&str; 6] =
    ["foreign", "count_gnu", "count_wide", "count_before", "count_all", "Iterator8try_fold"];

#[test]
fn own_image_is_parsed_and_searched_without_a_call() {
    if let Err(why) = program::find_standard_library(TRIPLE) {
        return not_run_here(TRIPLE, why);
    }
    let to = place("one_piece.s");
    // Dead code is not called once, so it is not inlined.
    let flags: Vec<_> = FLAGS.iter().copied().filter(|flag| *flag != "-Clink-dead-code").collect();
    program::emit("asm", TRIPLE, &source().join("lib.rs"), &flags, &to);
    let listing = fs::read_to_string(to).unwrap();
    for function in ["4Vdso8from_ptr17h", "5Image4find17h"] {
        let is_call = |line: &&str| line.starts_with("call") || line.starts_with("jmp\t_ZN");
        let is_needed = |line: &&str| !OUT_OF_LINE.iter().any(|name| line.contains(name));
        let calls: Vec<_> = cost::instructions(&listing, function).filter(is_call).collect();
        assert!(!calls.is_empty(), "{function} has no call of what foreign images need");
        let needed: Vec<_> = calls.into_iter().filter(is_needed).collect();
        assert!(needed.is_empty(), "{function}: {needed:?}");
    }
}
