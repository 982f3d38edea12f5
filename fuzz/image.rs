//! A sound image with changes that the input chooses is refused or keeps the promises, and the
//! parser stays within its bounds.
#![no_main]

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzz_target;
use test_images::kinds::{arm, kinds};
use test_images::spoil::{LONG, spoil};
use test_images::{Built, keeps_promises};

/// An image of every kind, and one with a name that is too long.
fn built() -> Vec<Built<'static>> {
    let mut long = arm();
    long.symbols[1].name = LONG;
    kinds().into_iter().map(|(_, spec)| spec).chain([long]).map(|spec| spec.build()).collect()
}

// Building an image takes longer than parsing it, so these are spoilt and restored.
thread_local!(static BUILT: RefCell<Vec<(Built<'static>, Vec<u8>)>> =
    RefCell::new(built().into_iter().map(|built| (built.clone(), built.bytes)).collect()));

/// Counts an input, and sometimes prints how many were images: a fuzzer whose inputs are all refused
/// finds nothing.
fn count(is_image: bool) {
    static INPUTS: AtomicU64 = AtomicU64::new(0);
    static IMAGES: AtomicU64 = AtomicU64::new(0);
    let images = IMAGES.fetch_add(u64::from(is_image), Ordering::Relaxed) + u64::from(is_image);
    let inputs = INPUTS.fetch_add(1, Ordering::Relaxed) + 1;
    if inputs % 10_000_000 == 0 || (inputs >= 1 << 16 && inputs.is_power_of_two()) {
        eprintln!("{images} of {inputs} inputs passed");
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, changes)) = input.split_first() else { return };
    BUILT.with_borrow_mut(|all| {
        let kind = usize::from(*kind) % all.len();
        let (built, sound) = &mut all[kind];
        built.bytes.clone_from(sound);
        spoil(built, changes);
        count(keeps_promises(&built.bytes));
    });
});
