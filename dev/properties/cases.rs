//! Runs a property on many cases.

use std::cell::Cell;
use std::env;

use proptest::strategy::Strategy;
use proptest::test_runner::{RngSeed, TestCaseError, TestError, TestRunner};

/// Runs `holds` on `usual` cases, or on `PROPTEST_CASES`, and fails with the smallest case that
/// panics. Returns the share of cases for which `holds` returned true, so that a test can assert
/// that its cases reach what they should.
#[track_caller]
pub(crate) fn check<S: Strategy>(usual: u32, cases: &S, holds: impl Fn(S::Value) -> bool) -> f64 {
    let mut config = proptest::test_runner::Config {
        failure_persistence: None,
        ..Default::default()
    };
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = usual;
    }
    if matches!(config.rng_seed, RngSeed::Random) {
        config.rng_seed = RngSeed::Fixed(0x7664_736f);
    }
    let wanted = f64::from(config.cases);
    let reached = Cell::new(0_u32);
    let outcome = TestRunner::new(config).run(cases, |case| {
        reached.set(reached.get() + u32::from(holds(case)));
        Ok::<(), TestCaseError>(())
    });
    match outcome {
        Ok(()) => f64::from(reached.get()) / wanted,
        Err(TestError::Fail(reason, case)) => panic!("{reason}\nsmallest case: {case:#?}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}
