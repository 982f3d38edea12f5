//! Sound images with changes, chosen at random and one at a time.

use proptest::prelude::*;
use proptest::sample::select;
use test_images::kinds::kinds;
use test_images::spoil::{EXTREMES, LONG, spoil};
use test_images::{Built, Spec, keeps_promises};

use super::{check, shapes};

fn base() -> impl Strategy<Value = Spec<'static>> {
    let kinds: Vec<_> = kinds().into_iter().map(|(_, spec)| spec).collect();
    let shapes = (shapes::spec(), prop::bool::weighted(0.1)).prop_map(|(mut spec, long)| {
        spec.extent = spec.extent.min(0x2000);
        if let Some(symbol) = spec.symbols.first_mut().filter(|_| long) {
            symbol.name = LONG;
        }
        spec
    });
    prop_oneof![select(kinds), shapes]
}

#[test]
fn a_spoilt_image_keeps_the_promises() {
    let cut = prop::option::weighted(0.1, any::<prop::sample::Index>());
    let cases = (base(), prop::collection::vec(any::<u8>(), 8..40), cut);
    let images = check(40_000, &cases, |(spec, changes, cut)| {
        let mut built = spec.build();
        spoil(&mut built, &changes);
        let size = built.bytes.len();
        keeps_promises(&built.bytes[..cut.map_or(size, |cut| cut.index(size))])
    });
    assert!(images > 0.2, "{images} of them are images");
}

#[test]
fn a_change_of_any_byte_keeps_the_promises() {
    for (kind, spec) in kinds() {
        let Built { mut bytes, .. } = spec.build();
        let mut images = 0;
        for at in 0..bytes.len() {
            let old = bytes[at];
            for new in [0, 1, 0xff, old ^ 0x80] {
                bytes[at] = new;
                images += usize::from(keeps_promises(&bytes));
            }
            bytes[at] = old;
        }
        assert!(images > bytes.len(), "{kind}: {images} images");
    }
}

#[test]
fn a_change_of_any_number_keeps_the_promises() {
    for (_, spec) in kinds() {
        let sound = spec.build();
        let start = sound.get("PT_LOAD.p_vaddr");
        for field in sound.fields.iter().map(|field| &field.name) {
            let old = sound.get(field);
            let near = [old.wrapping_sub(1), old.wrapping_add(1), !old, old << 1, 0xffff_ffff, 0xffff_fff0];
            // Dynamic entries are addresses: they point anywhere in the image.
            let step = if field.starts_with("DT_") { 8 } else { 512 };
            let inside = (0..=sound.bytes.len() as u64).step_by(step).map(|at| start.wrapping_add(at));
            for value in EXTREMES.into_iter().chain(near).chain(inside) {
                keeps_promises(&sound.clone().set(field, value).bytes);
            }
        }
        for size in 0..sound.bytes.len() as u64 {
            keeps_promises(&sound.clone().resize(size).bytes);
            assert!(!keeps_promises(&sound.bytes[..size as usize]), "{size} bytes");
        }
    }
}
