//! Builds vDSO-like ELF images, sound ones, from a description, and says where each part and each field of
//! them stands, so that a test can spoil it.
mod bytes;
pub mod kinds;
mod tables;

pub use bytes::{Built, Field, Places};
pub use tables::{gnu_hash, sysv_hash};

pub const LOCAL: u8 = 0;
pub const GLOBAL: u8 = 1;
pub const WEAK: u8 = 2;
pub const NOTYPE: u8 = 0;
pub const OBJECT: u8 = 1;
pub const FUNC: u8 = 2;
pub const UNDEF: u16 = 0;
pub const ABS: u16 = 0xfff1;
pub const PT_LOAD: u32 = 1;
pub const PT_DYNAMIC: u32 = 2;
pub const PT_PHDR: u32 = 6;
pub const PT_ARM_EXIDX: u32 = 0x7000_0001;
/// The name that an image with version tables gives itself.
pub const SONAME: &str = "linux-vdso.so.1";
/// Bytes of code that a symbol has.
pub const CODE: u64 = 32;

/// Where a symbol points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// To code of its own.
    Next,
    /// To the code of the symbol before it.
    Alias,
    /// Anywhere: this is its `st_value`.
    Exactly(u64),
}

/// A symbol; by default a global function of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sym<'a> {
    pub name: &'a str,
    /// Whether `st_name` is 0, as in the images of which arm's kernel took the names at boot.
    pub blank: bool,
    pub version: Option<&'a str>,
    pub value: Value,
    pub size: u64,
    pub kind: u8,
    pub bind: u8,
    pub shndx: u16,
}

impl Default for Sym<'_> {
    fn default() -> Self {
        let (value, size) = (Value::Next, CODE);
        Self { name: "", blank: false, version: None, value, size, kind: FUNC, bind: GLOBAL, shndx: 8 }
    }
}

impl<'a> Sym<'a> {
    /// A function.
    pub fn func(name: &'a str, version: &'a str) -> Self {
        Self { name, version: Some(version), ..Self::default() }
    }

    /// The symbol that a linker makes of a version.
    pub fn version(name: &'a str) -> Self {
        let func = Self::func(name, name);
        Self { kind: OBJECT, shndx: ABS, value: Value::Exactly(0), size: 0, ..func }
    }

    /// `st_value`, in a finished image.
    pub fn st_value(&self) -> u64 {
        if let Value::Exactly(value) = self.value { value } else { panic!("{self:?} has no place yet") }
    }

    fn hashed(&self) -> bool {
        self.bind != LOCAL && self.shndx != UNDEF
    }
}

/// A part of an image behind its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Hash,
    GnuHash,
    Symtab,
    Strtab,
    Versym,
    Verdef,
    Dynamic,
    Text,
}

impl Part {
    /// In the order of the kernel's linker scripts.
    pub const ALL: [Self; 8] = {
        use Part::{Dynamic, GnuHash, Hash, Strtab, Symtab, Text, Verdef, Versym};
        [Hash, GnuHash, Symtab, Strtab, Versym, Verdef, Dynamic, Text]
    };
}

/// The description of an image; by default a little-endian 64-bit one of `x86_64`, without symbols.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a trait of its own, and they go together freely")]
pub struct Spec<'a> {
    /// Whether it is `ELFCLASS64`.
    pub wide: bool,
    pub big_endian: bool,
    pub machine: u16,
    pub symbols: Vec<Sym<'a>>,
    pub sysv_hash: bool,
    pub gnu_hash: bool,
    /// Whether the words of `DT_HASH` have 64 bits, as on S/390.
    pub wide_hash: bool,
    /// Whether it has `DT_VERSYM` and `DT_VERDEF`.
    pub versions: bool,
    /// The load address, from which the addresses of the tables and the values of the symbols count.
    pub p_vaddr: u64,
    pub p_offset: usize,
    /// Whether the null symbol and absolute ones moved with the image, as QEMU's loader has it.
    pub relocated: bool,
    /// Whether the symbols' values are odd.
    pub thumb: bool,
    /// The types of the program headers.
    pub segments: Vec<u32>,
    pub order: Vec<Part>,
    /// How many bytes the image has at least; the room is before its last part.
    pub extent: usize,
}

impl Default for Spec<'_> {
    fn default() -> Self {
        Self {
            wide: true,
            big_endian: false,
            machine: 62,
            symbols: vec![],
            sysv_hash: true,
            gnu_hash: true,
            wide_hash: false,
            versions: true,
            p_vaddr: 0,
            p_offset: 0,
            relocated: false,
            thumb: false,
            segments: vec![PT_LOAD, PT_DYNAMIC],
            order: Part::ALL.to_vec(),
            extent: 0,
        }
    }
}

impl<'a> Spec<'a> {
    pub fn build(&self) -> Built<'a> {
        // Sizes do not depend on places: the first draft says where the parts are, the second where the last one is.
        let draft = (0..2).fold(Places::default(), |draft, _| self.write(draft).at);
        self.write(draft)
    }

    fn write(&self, draft: Places) -> Built<'a> {
        let Self { wide, big_endian, .. } = *self;
        let mut image = Built { wide, big_endian, symbols: self.placed(draft), ..Built::default() };
        let versions = self.version_names();
        let named = image.symbols.iter().filter(|symbol| !symbol.blank).map(|symbol| symbol.name);
        let mut strings = String::from("\0");
        for name in named.chain(versions.iter().copied()) {
            if !strings.contains(&format!("\0{name}\0")) {
                strings.extend([name, "\0"]);
            }
        }
        let tags = self.tags(draft, versions.len(), strings.len());
        tables::headers(&mut image, self, draft, tags.len());
        image.bytes.resize(image.bytes.len().max(self.p_offset), 0);
        for part in &self.order {
            image.align(if *part == Part::Text { 16 } else { 8 });
            if self.order.last() == Some(part) {
                let mut places = draft;
                let size = draft.end.saturating_sub(*places.of(*part));
                image.bytes.resize(image.bytes.len().max(self.extent.saturating_sub(size)), 0);
            }
            *image.at.of(*part) = image.bytes.len();
            match part {
                Part::Hash if self.sysv_hash => tables::write_hash(&mut image, self.wide_hash),
                Part::GnuHash if self.gnu_hash => tables::write_gnu_hash(&mut image),
                Part::Symtab => tables::write_symtab(&mut image, &strings, self.null_value()),
                Part::Strtab => image.bytes.extend(strings.as_bytes()),
                Part::Versym if self.versions => tables::write_versym(&mut image, &versions),
                Part::Verdef if self.versions => tables::write_verdef(&mut image, &versions, &strings),
                Part::Dynamic => tables::write_dynamic(&mut image, &tags),
                Part::Text => image.bytes.resize(image.bytes.len() + self.code_size(), 0xcc),
                Part::Hash | Part::GnuHash | Part::Versym | Part::Verdef => {}
            }
        }
        image.at.end = image.bytes.len();
        image
    }

    /// The address of an offset, as the image has it.
    fn address(&self, offset: usize) -> u64 {
        let address = self.p_vaddr.wrapping_add(offset as u64).wrapping_sub(self.p_offset as u64);
        if self.wide { address } else { address & 0xffff_ffff }
    }

    fn null_value(&self) -> u64 {
        if self.relocated { self.p_vaddr } else { 0 }
    }

    fn code_size(&self) -> usize {
        self.symbols.iter().filter(|symbol| symbol.value == Value::Next).count() * CODE as usize
    }

    /// The symbols, each with its value, in the order that `DT_GNU_HASH` wants: those that it leaves out first.
    fn placed(&self, draft: Places) -> Vec<Sym<'a>> {
        let (mut next, mut last) = (draft.text, 0);
        let mut symbols = self.symbols.clone();
        for symbol in &mut symbols {
            match symbol.value {
                Value::Next => {
                    last = self.address(next) | u64::from(self.thumb);
                    next += CODE as usize;
                }
                Value::Alias => {}
                Value::Exactly(value) if symbol.shndx == ABS => last = value.wrapping_add(self.null_value()),
                Value::Exactly(value) => last = value,
            }
            symbol.value = Value::Exactly(last);
        }
        symbols.sort_by_key(|symbol| (symbol.hashed(), self.gnu_hash.then(|| tables::gnu_bucket(symbol))));
        symbols
    }

    /// The image's own name, then the versions as the symbols name them first.
    fn version_names(&self) -> Vec<&'a str> {
        let mut names = vec![SONAME];
        for version in self.symbols.iter().filter_map(|symbol| symbol.version) {
            if !names.contains(&version) {
                names.push(version);
            }
        }
        names
    }

    /// The dynamic section: name, tag, value.
    fn tags(&self, at: Places, versions: usize, strings: usize) -> Vec<(&'static str, u64, u64)> {
        let address = |offset| self.address(offset);
        let mut tags = vec![
            ("DT_STRTAB", 5, address(at.strtab)),
            ("DT_SYMTAB", 6, address(at.symtab)),
            ("DT_STRSZ", 10, strings as u64),
            ("DT_SYMENT", 11, if self.wide { 24 } else { 16 }),
        ];
        if self.sysv_hash {
            tags.insert(0, ("DT_HASH", 4, address(at.hash)));
        }
        if self.gnu_hash {
            tags.insert(0, ("DT_GNU_HASH", 0x6fff_fef5, address(at.gnu_hash)));
        }
        if self.versions {
            tags.push(("DT_VERDEF", 0x6fff_fffc, address(at.verdef)));
            tags.push(("DT_VERDEFNUM", 0x6fff_fffd, versions as u64));
            tags.push(("DT_VERSYM", 0x6fff_fff0, address(at.versym)));
        }
        tags.push(("DT_NULL", 0, 0));
        tags
    }
}
