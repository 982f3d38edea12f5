//! A finished image: its bytes, and where its parts and its numbers stand.

use super::{ABS, FUNC, NOTYPE, Part, Sym};

/// The offsets of the parts; that of a part that the image lacks says where it would be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places {
    pub hash: usize,
    pub gnu_hash: usize,
    pub symtab: usize,
    pub strtab: usize,
    pub versym: usize,
    pub verdef: usize,
    pub dynamic: usize,
    pub text: usize,
    pub end: usize,
}

impl Places {
    pub(super) fn of(&mut self, part: Part) -> &mut usize {
        match part {
            Part::Hash => &mut self.hash,
            Part::GnuHash => &mut self.gnu_hash,
            Part::Symtab => &mut self.symtab,
            Part::Strtab => &mut self.strtab,
            Part::Versym => &mut self.versym,
            Part::Verdef => &mut self.verdef,
            Part::Dynamic => &mut self.dynamic,
            Part::Text => &mut self.text,
        }
    }
}

/// A number in an image: `e_phoff`, `PT_LOAD.p_vaddr`, `DT_HASH` (and `DT_HASH.d_tag`), `hash.bucket[0]`,
/// `gnu_hash.symoffset`, `sym[1].st_value`, `versym[1]`, `verdef[0].vd_next`.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub at: usize,
    pub size: usize,
}

/// A finished image.
#[derive(Clone, Debug, Default)]
pub struct Built<'a> {
    pub bytes: Vec<u8>,
    pub at: Places,
    pub fields: Vec<Field>,
    /// The symbols behind the null one, in the table's order, each with its `st_value`.
    pub symbols: Vec<Sym<'a>>,
    pub(super) wide: bool,
    pub(super) big_endian: bool,
}

impl<'a> Built<'a> {
    /// The symbols that can be called.
    pub fn callable(&self) -> impl Iterator<Item = &Sym<'a>> {
        self.symbols
            .iter()
            .filter(|symbol| matches!(symbol.kind, FUNC | NOTYPE) && symbol.hashed() && symbol.shndx != ABS)
    }

    pub fn field(&self, name: &str) -> &Field {
        let field = self.fields.iter().find(|field| field.name == name);
        field.unwrap_or_else(|| panic!("the image has no field {name}"))
    }

    /// Writes a field, or as much of the value as goes into it.
    pub fn set(&mut self, name: &str, value: u64) -> &mut Self {
        let Field { at, size, .. } = *self.field(name);
        let number = self.encode(value, size);
        self.bytes[at..at + size].copy_from_slice(&number);
        self
    }

    pub fn get(&self, name: &str) -> u64 {
        let Field { at, size, .. } = *self.field(name);
        let byte = |index: usize| {
            u64::from(self.bytes[if self.big_endian { at + index } else { at + size - 1 - index }])
        };
        (0..size).fold(0, |number, index| number << 8 | byte(index))
    }

    /// Takes an entry out of the dynamic section.
    pub fn remove(&mut self, tag: &str) -> &mut Self {
        const DT_DEBUG: u64 = 21;
        self.set(&format!("{tag}.d_tag"), DT_DEBUG)
    }

    pub(super) fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    /// The bytes of a number, or of as much of it as goes into them.
    pub(super) fn encode(&self, value: u64, size: usize) -> Vec<u8> {
        let mut number = value.to_le_bytes()[..size].to_vec();
        if self.big_endian {
            number.reverse();
        }
        number
    }

    pub(super) fn number(&mut self, name: impl Into<String>, value: u64, size: usize) {
        self.fields.push(Field { name: name.into(), at: self.bytes.len(), size });
        let number = self.encode(value, size);
        self.bytes.extend(number);
    }

    pub(super) fn addr(&mut self, name: impl Into<String>, value: u64) {
        self.number(name, value, if self.wide { 8 } else { 4 });
    }

    /// Numbers of one size, whose names begin alike.
    pub(super) fn numbers(&mut self, prefix: &str, size: usize, numbers: &[(&str, u64)]) {
        for (name, value) in numbers {
            self.number(format!("{prefix}{name}"), *value, size);
        }
    }

    pub(super) fn words(&mut self, name: &str, size: usize, words: &[u32]) {
        for (index, word) in words.iter().enumerate() {
            self.number(format!("{name}[{index}]"), (*word).into(), size);
        }
    }
}
