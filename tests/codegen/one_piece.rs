//! The promise: a first call parses and searches the process's own image by code in one piece,
//! which a CPU fetches ahead of its use. A call of another function, as of memcpy, makes it longer.

use test_support::{cost, program};

use crate::{FLAGS, place, source};

/// The look at the auxiliary vector, what an image does not need that the kernel's linker scripts
/// made, and the search of the program headers, which Rust 1.85 does not inline.
const OUT_OF_LINE: [&str; 7] = [
    "4auxv5value",
    "foreign",
    "count_gnu",
    "count_wide",
    "count_before",
    "count_all",
    "Iterator8try_fold",
];

#[test]
fn own_image_is_parsed_and_searched_without_a_call() {
    // Dead code is not called once, so it is not inlined.
    let flags: Vec<_> = FLAGS
        .iter()
        .copied()
        .filter(|flag| *flag != "-Clink-dead-code")
        .collect();
    let listing = program::emit(
        "asm",
        "x86_64-unknown-linux-gnu",
        &source(),
        &flags,
        &place("one_piece.s"),
    );
    let Some(listing) = listing.map(|listing| String::from_utf8(listing).unwrap()) else {
        return;
    };
    let is_call = |line: &&str| line.starts_with("call") || line.starts_with("jmp\t_ZN");
    let (out_of_line, needed): (Vec<_>, Vec<_>) =
        cost::instructions(&listing, "resolve11resolve_all17h")
            .filter(is_call)
            .partition(|line| OUT_OF_LINE.iter().any(|name| line.contains(name)));
    assert!(
        !out_of_line.is_empty(),
        "no call of what foreign images need"
    );
    assert!(needed.is_empty(), "{needed:?}");
}
