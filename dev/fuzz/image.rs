//! A well-formed image with changes that the input chooses is rejected, or keeps the guarantees.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use test_images::corrupt::corrupt;
use test_images::kinds::{arm, kinds};
use test_images::{Built, keeps_promises};

/// Builds an image of every kind, and one with a name that is too long.
fn built() -> Vec<Built<'static>> {
    let mut long = arm();
    long.symbols[1].name = "l".repeat(1024).leak();
    kinds()
        .into_iter()
        .map(|(_, spec)| spec)
        .chain([long])
        .map(|spec| spec.build())
        .collect()
}

// Building an image takes longer than parsing it, so these are corrupted and restored.
thread_local!(static BUILT: RefCell<Vec<(Built<'static>, Vec<u8>)>> =
    RefCell::new(built().into_iter().map(|built| (built.clone(), built.bytes)).collect()));

fuzz_target!(|input: &[u8]| {
    let Some((kind, changes)) = input.split_first() else {
        return;
    };
    BUILT.with_borrow_mut(|all| {
        let kind = usize::from(*kind) % all.len();
        let (built, sound) = &mut all[kind];
        built.bytes.clone_from(sound);
        corrupt(built, changes);
        keeps_promises(&built.bytes);
    });
});
