//! Changes that spoil a sound image. The properties and the fuzzer choose among them.

use crate::Built;

/// The new value of a number.
#[derive(Clone, Copy, Debug)]
pub enum Extreme {
    /// This one.
    Exactly(u64),
    /// The old value plus this.
    Beside(i64),
    /// The image's size plus this, as an offset or as an address.
    Size(i64, bool),
    /// The value of another number.
    Other(usize),
}

/// A change. Indices of fields and bytes wrap.
#[derive(Clone, Debug)]
pub enum Change {
    Number(usize, Extreme),
    Flip(usize, u8),
    /// Copies bytes of another image: from, to, size.
    Splice(Vec<u8>, usize, usize, usize),
    /// Sets the size of the loaded segment.
    Resize(usize),
    /// Moves the program headers within the first two pages.
    Move(usize),
}

/// Numbers at which sums, products and casts overflow.
pub const EXTREMES: [u64; 8] = [0, 1, u64::MAX, u64::MAX - 1, 0x80, 0x8000, 1 << 31, 1 << 63];

/// A name that is too long for the parser.
pub const LONG: &str = match std::str::from_utf8(&[b'l'; 1024]) {
    Ok(name) => name,
    Err(_) => unreachable!(),
};

impl Change {
    pub fn apply(&self, built: &mut Built<'_>) {
        match self {
            Self::Number(field, extreme) => {
                let name = named(built, *field);
                let value = extreme.value(built, &name);
                built.set(&name, value);
            }
            Self::Flip(at, bit) => {
                let at = at % built.bytes.len();
                built.bytes[at] ^= 1 << bit;
            }
            Self::Splice(donor, from, to, size) => {
                let from = &donor[from % donor.len()..];
                let to = to % built.bytes.len();
                for (to, from) in built.bytes[to..].iter_mut().zip(from).take(*size) {
                    *to = *from;
                }
            }
            Self::Resize(size) => {
                let size = (size % (built.bytes.len() * 2)) as u64;
                built.resize(size);
            }
            Self::Move(to) => {
                let to = to % 0x2000;
                let from = built.field("e_shstrndx").at + 2;
                let size = if built.get("EI_CLASS") == 2 { 56 } else { 32 } * built.get("e_phnum") as usize;
                let headers: Vec<_> = built.bytes.iter().copied().skip(from).take(size).collect();
                let end = to + headers.len();
                built.bytes.resize(built.bytes.len().max(end), 0);
                built.bytes[to..end].copy_from_slice(&headers);
                built.set("e_phoff", to as u64);
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
            Self::Other(field) => built.get(&named(built, field)),
        }
    }
}

fn named(built: &Built<'_>, field: usize) -> String {
    built.fields[field % built.fields.len()].name.clone()
}
