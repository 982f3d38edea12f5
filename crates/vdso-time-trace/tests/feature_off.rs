//! Without the feature `enabled` the macro is the bare call: the machine code of a file of reads is the same, to the byte.

#![cfg(target_arch = "x86_64")]

#[path = "support/build.rs"]
mod build;

use std::fs;

use vdso_time_trace::{Counter, PerSite, report};

/// The listing of `tests/support/reads.rs`: all its functions and data.
fn listing(features: &[&str], flags: &[&str]) -> String {
    let listing = build::compile("reads", features, flags, "asm").unwrap_or_else(|error| panic!("{error}"));
    fs::read_to_string(listing).unwrap()
}

#[test]
fn the_machine_code_is_that_of_the_bare_calls() {
    let (bare, traced) = (listing(&[], &[]), listing(&[], &["--cfg=traced"]));
    for function in ["seconds", "nanoseconds", "microseconds", "cpu", "in_a_loop"] {
        assert!(bare.contains(function), "{function}");
    }
    assert_eq!(bare, traced);
    // It would show if it were not.
    assert_ne!(bare, listing(&["vdso-time-trace/enabled"], &["--cfg=traced"]));
    assert_eq!(bare, listing(&["vdso-time-trace/enabled"], &[]));
}

#[test]
#[cfg(not(feature = "enabled"))]
fn there_are_no_sites() {
    assert!(vdso_time_trace::traced!("here", vdso_time::time()) > 0);
    assert!(vdso_time_trace::sites().is_empty());
}

#[test]
fn a_report_without_sites_says_why_there_are_none() {
    static CALLS: PerSite<Counter, 4> = PerSite::new();
    let why = if cfg!(feature = "enabled") {
        "no site: this program has no call in `traced!`\n"
    } else {
        "no site: the feature `enabled` of vdso-time-trace is off\n"
    };
    assert_eq!(report(&CALLS).to_string(), why);
}
