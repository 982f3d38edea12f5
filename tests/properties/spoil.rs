//! What is done to a sound image to spoil it. The properties and the fuzzer choose among the same changes.

use super::image::Built;

/// What a number is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extreme {
    /// A number at which sums, products and casts go over.
    Exactly(u64),
    /// Beside what it was.
    Beside(i64),
    /// Beside the image's size, as an offset or, from the load address, as an address.
    Size(i64, bool),
    /// What another number is.
    Other(usize),
}

/// A change. Where one is to a field or a byte, any number names one of them.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Number(usize, Extreme),
    Flip(usize, u8),
    /// So many bytes of another image, from there to here.
    Splice(Vec<u8>, usize, usize, usize),
    /// The segment's size in the file and in memory.
    Resize(usize),
    /// The program headers, to anywhere in the first two pages.
    Move(usize),
}

/// The numbers at which sums, products and casts go over.
pub(crate) const EXTREMES: [u64; 8] = [0, 1, u64::MAX, u64::MAX - 1, 0x80, 0x8000, 1 << 31, 1 << 63];

/// A name that is too long to be shown.
pub(crate) const LONG: &str = match std::str::from_utf8(&[b'l'; 1024]) {
    Ok(name) => name,
    Err(_) => unreachable!(),
};

impl Change {
    pub(crate) fn apply(&self, built: &mut Built<'_>) {
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
                built.set("PT_LOAD.p_filesz", size).set("PT_LOAD.p_memsz", size);
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
