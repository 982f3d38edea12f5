//! Sound images, spoilt: bits flipped, pieces of another image written in, numbers set to extremes, the end cut off.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::image::Spec;
use super::image_kinds::kinds;
use super::spoil::{Change, EXTREMES, Extreme, LONG};
use super::{check, promises, shapes, steps, walks};

fn extreme() -> impl Strategy<Value = Extreme> {
    prop_oneof![
        select(&EXTREMES[..]).prop_map(Extreme::Exactly),
        (-2..=2_i64).prop_map(Extreme::Beside),
        (-2..=2_i64, any::<bool>()).prop_map(|(beside, address)| Extreme::Size(beside, address)),
        any::<usize>().prop_map(Extreme::Other),
    ]
}

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

fn change() -> impl Strategy<Value = Change> {
    let splice = (base(), any::<usize>(), any::<usize>(), 1..200_usize);
    prop_oneof![
        8 => (any::<usize>(), extreme()).prop_map(|(field, extreme)| Change::Number(field, extreme)),
        2 => (any::<usize>(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        2 => splice.prop_map(|(spec, from, to, size)| Change::Splice(spec.build().bytes, from, to, size)),
        1 => any::<usize>().prop_map(Change::Resize),
        1 => any::<usize>().prop_map(Change::Move),
    ]
}

#[test]
fn a_spoilt_image_keeps_the_promises() {
    let cut = prop::option::weighted(0.1, any::<Index>());
    let cases = (base(), prop::collection::vec(change(), 1..5), cut);
    let images = check(40_000, &cases, |(spec, changes, cut)| {
        let mut built = spec.build();
        for change in &changes {
            change.apply(&mut built);
        }
        let bytes = &built.bytes[..cut.map_or(built.bytes.len(), |cut| cut.index(built.bytes.len()))];
        steps::bounded(bytes);
        walks::agree(bytes);
        promises::keep(bytes).is_some()
    });
    assert!(images > 0.2, "{images} of them are images");
}
