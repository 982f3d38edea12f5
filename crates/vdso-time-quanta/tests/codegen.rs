//! Tests, in the compiler's listing, that this crate reads the counter without a fence, as quanta
//! does.

#![cfg(all(
    target_arch = "x86_64",
    target_pointer_width = "64",
    target_env = "gnu"
))]

use test_support::program;

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

#[test]
fn a_read_has_a_fence_only_with_the_feature_ordered() {
    for (features, is_ordered) in [("", false), ("ordered", true)] {
        let directory = format!("quanta-{features}");
        let library = program::library(["vdso-time-quanta", features], TRIPLE, &directory, &[]);
        let source = "crates/vdso-time-quanta/tests/programs/reads.rs";
        let listing = library.and_then(|library| program::listing(TRIPLE, source, &library, &[]));
        let Some(listing) = listing else { return };
        // The whole listing is searched, because Rust 1.85 does not inline the read: both APIs call
        // it.
        let has = |instruction: &str| listing.lines().any(|line| line.trim() == instruction);
        assert_eq!(
            (has("rdtsc"), has("lfence")),
            (true, is_ordered),
            "{features}\n{listing}"
        );
    }
}
