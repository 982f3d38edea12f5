//! Counts, in the compiler's listing, the instructions that a site costs while it has no tracer
//! (x86_64).
//!
//! This program has no site of its own, so its report is empty.

#![cfg(all(
    target_arch = "x86_64",
    target_pointer_width = "64",
    target_env = "gnu"
))]

use test_support::cost::Cost;
use test_support::program;
use vdso_time_trace::{Counter, report};

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

#[test]
fn a_site_costs_a_load_a_test_and_a_branch_and_nothing_without_the_feature() {
    for (features, expected) in [
        ("", Cost::default()),
        (
            "enabled",
            Cost {
                instructions: 3,
                branches: 1,
                checks: 0,
            },
        ),
    ] {
        let directory = format!("trace-{features}");
        let library = program::library(["vdso-time-trace", features], TRIPLE, &directory, &[]);
        let Some(library) = library else { return };
        // The macro of linkme is compiled for the host.
        let target = library.ancestors().nth(3).unwrap();
        let host = format!("-L{}", target.join("release/deps").display());
        let source = "crates/vdso-time-trace/tests/programs/loops.rs";
        let listing =
            program::listing(TRIPLE, source, &library, &["--extern=vdso_time", &host]).unwrap();
        let site = Cost::of_turn(&listing, "at_a_site", "no test");
        let bare = Cost::of_turn(&listing, "bare", "no test");
        assert_eq!(site.less(bare), expected, "{features}\n{listing}");
    }
}

#[test]
fn a_report_without_sites_says_why() {
    static CALLS: [Counter; 4] = [const { Counter::new() }; 4];
    let why = if cfg!(feature = "enabled") {
        "no site: this program has no call in `traced!`\n"
    } else {
        "no site: the feature `enabled` of vdso-time-trace is off\n"
    };
    #[cfg(not(feature = "enabled"))]
    assert!(vdso_time_trace::traced!("here", vdso_time::time()) > 0);
    assert_eq!(report(&CALLS).to_string(), why);
}
