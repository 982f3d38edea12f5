//! Sound images, spoilt: bits flipped, pieces of another image written in, numbers set to extremes, the end cut off.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::image::{Built, Spec};
use super::image_kinds::kinds;
use super::{check, promises, shapes};

/// What a number is set to.
#[derive(Clone, Copy, Debug)]
enum Extreme {
    /// A number at which sums, products and casts go over.
    Exactly(u64),
    /// Beside what it was.
    Beside(i64),
    /// Beside the image's size, as an offset or, from the load address, as an address.
    Size(i64, bool),
    /// What another number is.
    Other(Index),
}

#[derive(Clone, Debug)]
enum Change {
    Number(Index, Extreme),
    Flip(Index, u8),
    /// So many bytes of another image, from there to here.
    Splice(Box<Spec<'static>>, Index, Index, usize),
    /// The segment's size in the file and in memory.
    Resize(Index),
    /// The program headers, to anywhere in the first two pages.
    Move(usize),
}

fn extreme() -> impl Strategy<Value = Extreme> {
    let sign = select(&[0x80, 0x8000, 1 << 31, 1 << 63][..]);
    let number = prop_oneof![select(&[0, 1, u64::MAX, u64::MAX - 1][..]), sign];
    prop_oneof![
        number.prop_map(Extreme::Exactly),
        (-2..=2_i64).prop_map(Extreme::Beside),
        (-2..=2_i64, any::<bool>()).prop_map(|(beside, address)| Extreme::Size(beside, address)),
        any::<Index>().prop_map(Extreme::Other),
    ]
}

/// A name that is too long to be shown.
const LONG: &str = match std::str::from_utf8(&[b'l'; 1024]) {
    Ok(name) => name,
    Err(_) => unreachable!(),
};

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
    let splice = (base(), any::<Index>(), any::<Index>(), 1..200_usize);
    prop_oneof![
        8 => (any::<Index>(), extreme()).prop_map(|(field, extreme)| Change::Number(field, extreme)),
        2 => (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        2 => splice.prop_map(|(spec, from, to, size)| Change::Splice(Box::new(spec), from, to, size)),
        1 => any::<Index>().prop_map(Change::Resize),
        1 => (0..0x2000_usize).prop_map(Change::Move),
    ]
}

impl Change {
    fn apply(&self, built: &mut Built<'_>) {
        match self {
            Self::Number(field, extreme) => {
                let name = field.get(&built.fields).name.clone();
                let value = extreme.value(built, &name);
                built.set(&name, value);
            }
            Self::Flip(at, bit) => *at.get_mut(&mut built.bytes) ^= 1 << bit,
            Self::Splice(spec, from, to, size) => {
                let donor = spec.build().bytes;
                let from = &donor[from.index(donor.len())..];
                let to = to.index(built.bytes.len());
                for (to, from) in built.bytes[to..].iter_mut().zip(from).take(*size) {
                    *to = *from;
                }
            }
            Self::Resize(size) => {
                let size = size.index(built.bytes.len() * 2) as u64;
                built.set("PT_LOAD.p_filesz", size).set("PT_LOAD.p_memsz", size);
            }
            Self::Move(to) => {
                let from = built.field("e_shstrndx").at + 2;
                let size = if built.get("EI_CLASS") == 2 { 56 } else { 32 } * built.get("e_phnum") as usize;
                let headers: Vec<_> = built.bytes.iter().copied().skip(from).take(size).collect();
                let end = to + headers.len();
                built.bytes.resize(built.bytes.len().max(end), 0);
                built.bytes[*to..end].copy_from_slice(&headers);
                built.set("e_phoff", *to as u64);
            }
        }
    }
}

impl Extreme {
    fn value(self, built: &Built<'_>, field: &str) -> u64 {
        match self {
            Self::Exactly(value) => value,
            Self::Beside(step) => built.get(field).wrapping_add_signed(step),
            Self::Size(step, address) => {
                let start = if address { built.get("PT_LOAD.p_vaddr") } else { 0 };
                start.wrapping_add(built.bytes.len() as u64).wrapping_add_signed(step)
            }
            Self::Other(field) => built.get(&field.get(&built.fields).name),
        }
    }
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
        promises::keep(bytes).is_some()
    });
    assert!(images > 0.2, "{images} of them are images");
}
