//! A finished image: its bytes, and the offsets of its parts and fields.

use crate::{ABS, FUNC, NOTYPE, Part, Sym};

/// A number in an image: `e_phoff`, `PT_LOAD.p_vaddr`, `DT_HASH` (and `DT_HASH.d_tag`),
/// `hash.bucket[0]`, `gnu_hash.symoffset`, `sym[1].st_value`, `versym[1]`, `verdef[0].vd_next`.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub at: usize,
    pub size: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Built<'a> {
    pub bytes: Vec<u8>,
    pub fields: Vec<Field>,
    /// The symbols after the null one, in the table's order, each with its `st_value`.
    pub symbols: Vec<Sym<'a>>,
    pub(crate) parts: [usize; Part::ALL.len()],
    pub(crate) wide: bool,
    pub(crate) big_endian: bool,
}

impl<'a> Built<'a> {
    /// Returns the offset of a part, or that at which an absent part would begin.
    pub fn at(&self, part: Part) -> usize {
        self.parts[part as usize]
    }

    /// Returns the symbols that can be called.
    pub fn callable(&self) -> impl Iterator<Item = &Sym<'a>> {
        self.symbols.iter().filter(|symbol| {
            matches!(symbol.kind, FUNC | NOTYPE) && symbol.hashed() && symbol.shndx != ABS
        })
    }

    fn field(&self, name: &str) -> &Field {
        let field = self.fields.iter().find(|field| field.name == name);
        field.unwrap_or_else(|| panic!("the image has no field {name}"))
    }

    /// Writes a field, truncating the value to the field's size.
    pub fn set(&mut self, name: &str, value: u64) -> &mut Self {
        let Field { at, size, .. } = *self.field(name);
        let number = self.encode(value, size);
        self.bytes[at..at + size].copy_from_slice(&number);
        self
    }

    pub fn get(&self, name: &str) -> u64 {
        let Field { at, size, .. } = *self.field(name);
        let mut number = self.bytes[at..at + size].to_vec();
        if !self.big_endian {
            number.reverse();
        }
        number
            .into_iter()
            .fold(0, |number, byte| number << 8 | u64::from(byte))
    }

    /// Removes an entry from the dynamic section.
    pub fn remove(&mut self, tag: &str) -> &mut Self {
        const DT_DEBUG: u64 = 21;
        self.set(&format!("{tag}.d_tag"), DT_DEBUG)
    }

    /// Sets the size of the loaded segment.
    pub fn resize(&mut self, size: u64) -> &mut Self {
        self.set("PT_LOAD.p_filesz", size)
            .set("PT_LOAD.p_memsz", size)
    }

    /// Encodes the low `size` bytes of a number in the image's byte order.
    fn encode(&self, value: u64, size: usize) -> Vec<u8> {
        let mut number = value.to_le_bytes()[..size].to_vec();
        if self.big_endian {
            number.reverse();
        }
        number
    }

    pub(crate) fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    /// Appends a field.
    pub(crate) fn number(&mut self, name: impl Into<String>, value: u64, size: usize) {
        self.fields.push(Field {
            name: name.into(),
            at: self.bytes.len(),
            size,
        });
        let number = self.encode(value, size);
        self.bytes.extend(number);
    }

    /// Appends an `Addr` or `Off`.
    pub(crate) fn addr(&mut self, name: impl Into<String>, value: u64) {
        self.number(name, value, if self.wide { 8 } else { 4 });
    }

    /// Appends fields of one size, whose names have one prefix.
    pub(crate) fn numbers(&mut self, prefix: &str, size: usize, numbers: &[(&str, u64)]) {
        for (name, value) in numbers {
            self.number(format!("{prefix}{name}"), *value, size);
        }
    }

    /// Appends an array of words.
    pub(crate) fn words(&mut self, name: &str, size: usize, words: &[u32]) {
        for (index, word) in words.iter().enumerate() {
            self.number(format!("{name}[{index}]"), (*word).into(), size);
        }
    }
}
