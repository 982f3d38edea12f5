//! quanta reads the counter without a fence, and so does this crate, in the compiler's listing.

#![cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_env = "gnu"))]

use test_support::{cost, program};

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

#[test]
fn a_read_has_a_fence_only_with_the_feature_ordered() {
    for (features, fences) in [("", 0), ("ordered", 1)] {
        let folder = format!("quanta-{features}");
        let library = program::library(["vdso-time-quanta", features], TRIPLE, &folder, &[]);
        let source = "crates/vdso-time-quanta/tests/programs/reads.rs";
        let listing = library.and_then(|library| program::listing(TRIPLE, source, &library, &[]));
        let Some(listing) = listing else { return };
        for function in ["by_clock", "by_instant"] {
            let count = |name: &str| {
                cost::instructions(&listing, function).filter(|line| line.contains(name)).count()
            };
            assert_eq!((count("rdtsc"), count("lfence")), (1, fences), "{function} {features}\n{listing}");
        }
    }
}
