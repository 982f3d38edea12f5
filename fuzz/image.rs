//! A sound image with changes that the input chooses is refused or keeps the promises, and the
//! parser stays within its bounds.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use test_images::kinds::{arm, kinds};
use test_images::{Built, keeps_promises};

/// An image of every kind, and one with a name that is too long.
fn built() -> Vec<(Built<'static>, Vec<u8>)> {
    let mut long = arm();
    long.symbols[1].name = "l".repeat(1024).leak();
    let specs = kinds().into_iter().map(|(_, spec)| spec).chain([long]);
    specs.map(|spec| spec.build()).map(|built| (built.clone(), built.bytes)).collect()
}

// Building an image takes longer than parsing it, so these are changed and restored.
thread_local!(static BUILT: RefCell<Vec<(Built<'static>, Vec<u8>)>> = RefCell::new(built()));

fuzz_target!(|input: &[u8]| {
    let Some((kind, changes)) = input.split_first() else { return };
    BUILT.with_borrow_mut(|all| {
        let kind = usize::from(*kind) % all.len();
        let (built, sound) = &mut all[kind];
        built.bytes.clone_from(sound);
        // 2 bytes choose a field. The others are its number, or what is added to it.
        for change in changes.chunks_exact(8) {
            let change = i64::from_le_bytes(change.try_into().unwrap());
            let field = built.fields[(change as usize >> 1 & 0x7fff) % built.fields.len()].name.clone();
            let old = if change & 1 == 0 { 0 } else { built.get(&field) };
            built.set(&field, old.wrapping_add_signed(change >> 16));
        }
        keeps_promises(&built.bytes);
    });
});
