//! A well-formed image with changes that the input chooses is rejected, or keeps the guarantees.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use test_images::corrupt::corrupt;
use test_images::kinds::{arm, kinds};
use test_images::{Built, assert_keeps_promises};

/// An image that is corrupted, and its bytes before that.
struct Case {
    built: Built<'static>,
    sound: Vec<u8>,
}

/// Builds an image of every kind, and one with a name that is too long.
fn cases() -> Vec<Case> {
    let mut long = arm();
    long.symbols[1].name = "l".repeat(1024).leak();
    let mut specs = Vec::new();
    for (_, spec) in kinds() {
        specs.push(spec);
    }
    specs.push(long);
    let mut cases = Vec::new();
    for spec in specs {
        let built = spec.build();
        let sound = built.bytes.clone();
        cases.push(Case { built, sound });
    }
    cases
}

thread_local! {
    // Building an image takes longer than parsing it, so these are corrupted and restored.
    static CASES: RefCell<Vec<Case>> = RefCell::new(cases());
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, changes)) = input.split_first() else {
        return;
    };
    CASES.with_borrow_mut(|cases| {
        let kind = usize::from(*kind) % cases.len();
        let case = &mut cases[kind];
        case.built.bytes.clone_from(&case.sound);
        corrupt(&mut case.built, changes);
        assert_keeps_promises(&case.built.bytes);
    });
});
