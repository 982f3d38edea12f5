//! Any bytes: noise, and noise where a sound image has its tables.

use proptest::prelude::*;
use vdso_time::elf::Image;

use super::image::{self, Spec};
use super::{check, promises, shapes, steps, walks};

fn noise(most: usize) -> impl Strategy<Value = Vec<u8>> {
    // Small numbers, which is what sizes and offsets are.
    let byte = prop_oneof![2 => Just(0), 1 => 0..40_u8, 1 => any::<u8>()];
    prop::collection::vec(byte, 0..most)
}

#[test]
fn noise_is_no_image() {
    let ident = (1..=2_u8, 1..=2_u8).prop_map(|(class, data)| [0x7f, b'E', b'L', b'F', class, data]);
    let bytes = (prop::option::of(ident), noise(512)).prop_map(|(ident, noise)| {
        ident.map_or(noise.clone(), |ident| ident.into_iter().chain(noise).collect())
    });
    check(20_000, &bytes, |bytes| {
        steps::bounded(&bytes);
        walks::agree(&bytes);
        promises::keep(&bytes).is_some()
    });
}

/// The dynamic section leads to tables that are noise.
fn noisy_tables(spec: &Spec<'_>, noise: &[u8]) -> Vec<u8> {
    let mut built = Spec { order: dynamic_first(&spec.order), ..spec.clone() }.build();
    let end = built.fields.iter().filter(|field| field.name.starts_with("DT_")).map(|field| field.at).max();
    let tables = &mut built.bytes[end.unwrap() + 8..];
    for (byte, noise) in tables.iter_mut().zip(noise.iter().cycle()) {
        *byte = *noise;
    }
    built.bytes
}

fn dynamic_first(order: &[image::Part]) -> Vec<image::Part> {
    let mut order = order.to_vec();
    order.sort_by_key(|part| *part != image::Part::Dynamic);
    order
}

#[test]
fn noise_in_the_tables() {
    let cases = (shapes::spec(), noise(2048));
    let images = check(8_000, &cases, |(spec, noise)| {
        let bytes = noisy_tables(&spec, &noise);
        steps::bounded(&bytes);
        walks::agree(&bytes);
        promises::keep(&bytes).is_some()
    });
    assert!(images > 0.1, "{images} of them are images");
}

#[test]
fn the_extent_comes_of_as_many_bytes_as_there_are() {
    let cases = (shapes::spec(), any::<prop::sample::Index>());
    let whole = check(5_000, &cases, |(spec, at)| {
        let built = spec.build();
        let cut = at.index(built.bytes.len() + 1);
        let seen = promises::extent(&built.bytes[..cut]);
        let headers = built.get("e_phoff") + built.get("e_phnum") * built.get("e_phentsize");
        let enough = cut as u64 >= headers;
        assert_eq!(seen.ok(), enough.then_some(built.bytes.len()), "{cut} bytes");
        assert_eq!(Image::parse(&built.bytes[..cut]).is_ok(), cut == built.bytes.len(), "{cut} bytes");
        enough
    });
    assert!(whole > 0.2, "{whole} of them have all headers");
}
