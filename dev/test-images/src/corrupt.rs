//! Changes that corrupt a sound image. Properties and the fuzz target choose them by bytes.

use std::sync::LazyLock;

use crate::{Built, kinds};

/// Numbers at which sums, products and casts overflow.
pub const EXTREMES: [u64; 8] = [0, 1, u64::MAX, u64::MAX - 1, 0x80, 0x8000, 1 << 31, 1 << 63];

/// The bytes of an image of every kind.
static KINDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    kinds::kinds()
        .into_iter()
        .map(|(_, spec)| spec.build().bytes)
        .collect()
});

/// Makes one change for each 8 bytes of the input. Indices wrap.
pub fn corrupt(built: &mut Built<'_>, input: &[u8]) {
    for change in input.chunks_exact(8) {
        corrupt_once(built, change.try_into().expect("8 bytes"));
    }
}

fn corrupt_once(built: &mut Built<'_>, [kind, how, rest @ ..]: [u8; 8]) {
    let number_at = |at: usize| usize::from(u16::from_le_bytes([rest[at], rest[at + 1]]));
    let a = number_at(0);
    let b = number_at(2);
    let c = number_at(4);
    let len = built.bytes.len();
    match kind {
        0..160 => {
            let field = field(built, a);
            built.set(&field, number(built, &field, how, b, c));
        }
        160..192 => built.bytes[a % len] ^= 1 << (how % 8),
        192..232 => {
            let donor = &KINDS[c % KINDS.len()];
            let donor = &donor[b % donor.len()..];
            for (to, from) in built.bytes[a % len..]
                .iter_mut()
                .zip(donor)
                .take(how.into())
            {
                *to = *from;
            }
        }
        232.. => _ = built.resize((a % (len * 2)) as u64),
    }
}

fn field(built: &Built<'_>, index: usize) -> String {
    built.fields[index % built.fields.len()].name.clone()
}

/// Chooses a new value for a field: an extreme or any number, or one near the old value, near the
/// end of the image (as an offset or an address), or equal to another field.
fn number(built: &Built<'_>, field_name: &str, how: u8, b: usize, c: usize) -> u64 {
    let near = |value: u64| value.wrapping_add_signed(i64::from(how % 5) - 2);
    let size = built.bytes.len() as u64;
    match how {
        0..64 => EXTREMES[usize::from(how) % EXTREMES.len()],
        64..96 => (b << 16 | c) as u64,
        96..160 => near(built.get(field_name)),
        160..184 => near(size),
        184..208 => near(built.get("PT_LOAD.p_vaddr").wrapping_add(size)),
        208.. => built.get(&field(built, b)),
    }
}
