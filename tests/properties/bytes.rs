//! Random bytes, alone and in the tables of a sound image.

use proptest::prelude::*;
use test_images::{Part, Spec, keeps_promises};

use super::{check, shapes};

/// Random bytes, most of them small, as sizes and offsets are.
fn noise(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![2 => Just(0), 1 => 0..40_u8, 1 => any::<u8>()];
    prop::collection::vec(byte, 0..most)
}

#[test]
fn random_bytes_keep_the_promises() {
    let ident = (1..=2_u8, 1..=2_u8).prop_map(|(class, data)| vec![0x7f, b'E', b'L', b'F', class, data]);
    let bytes = (prop::option::of(ident), noise(512));
    check(20_000, &bytes, |(ident, noise)| keeps_promises(&[ident.unwrap_or_default(), noise].concat()));
}

/// An image with a sound dynamic section, and noise in every table.
fn noisy_tables(spec: &Spec<'_>, noise: &[u8]) -> Vec<u8> {
    let mut order = spec.order.clone();
    order.sort_by_key(|part| *part != Part::Dynamic);
    let mut built = Spec { order, ..spec.clone() }.build();
    let start = built.field("DT_NULL").at + 8;
    for (byte, noise) in built.bytes[start..].iter_mut().zip(noise.iter().cycle()) {
        *byte = *noise;
    }
    built.bytes
}

#[test]
fn random_tables_keep_the_promises() {
    let cases = (shapes::spec(), noise(2048));
    let images = check(8_000, &cases, |(spec, noise)| keeps_promises(&noisy_tables(&spec, &noise)));
    assert!(images > 0.1, "{images} of them are images");
}
