//! quanta reads the counter without a fence, and so does this crate, in the compiler's listing.

#![cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_env = "gnu"))]

use std::fs;

use test_support::{cost, not_run_here, program};

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

#[test]
fn a_read_has_a_fence_only_with_the_feature_ordered() {
    for (features, fences) in [("", 0), ("ordered", 1)] {
        let folder = format!("quanta-{features}");
        let library = match program::library(["vdso-time-quanta", features], TRIPLE, &folder, &[]) {
            Ok(library) => library,
            Err(why) => return not_run_here(TRIPLE, why),
        };
        let listing = library.with_file_name("reads.s");
        let flags = ["--crate-type=lib", "-Copt-level=3", "-Ccodegen-units=1", "--emit=asm"];
        let source = "crates/vdso-time-quanta/tests/programs/reads.rs";
        program::compile(TRIPLE, source, &library, &flags, &listing).unwrap();
        let listing = fs::read_to_string(listing).unwrap();
        for function in ["by_clock", "by_instant"] {
            let count = |name: &str| {
                cost::instructions(&listing, function).filter(|line| line.contains(name)).count()
            };
            assert_eq!((count("rdtsc"), count("lfence")), (1, fences), "{function} {features}\n{listing}");
        }
    }
}
