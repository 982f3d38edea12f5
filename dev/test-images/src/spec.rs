//! The description of an image.

use std::collections::BTreeSet;

use vdso_time::__private::Abi;

use crate::{Built, tables};

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
/// The image's own name in `DT_VERDEF`.
pub const SONAME: &str = "linux-vdso.so.1";
/// The machines with 64-bit words in `DT_HASH`.
pub const WIDE_HASH: [u16; 2] = [22, 0x9026];
/// The size of a function's code.
const CODE: u64 = 32;

/// Where a symbol points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// To code of its own.
    Next,
    /// To the code of the symbol before it.
    Alias,
    /// To this address.
    Exactly(u64),
}

/// A symbol; by default a global function of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sym<'a> {
    pub name: &'a str,
    /// Whether `st_name` is 0, as in an image whose names arm's kernel blanked at boot.
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
        Self {
            name: "",
            blank: false,
            version: None,
            value: Value::Next,
            size: CODE,
            kind: FUNC,
            bind: GLOBAL,
            shndx: 8,
        }
    }
}

impl<'a> Sym<'a> {
    /// Creates a function.
    pub fn func(name: &'a str, version: &'a str) -> Self {
        Self {
            name,
            version: Some(version),
            ..Self::default()
        }
    }

    /// Creates the symbol that a linker makes for a version.
    pub fn version(name: &'a str) -> Self {
        let func = Self::func(name, name);
        Self {
            kind: OBJECT,
            shndx: ABS,
            value: Value::Exactly(0),
            size: 0,
            ..func
        }
    }

    /// Returns `st_value`, in a finished image.
    pub fn st_value(&self) -> u64 {
        if let Value::Exactly(value) = self.value {
            value
        } else {
            panic!("{self:?} has no address yet")
        }
    }

    /// Returns the name in the string table.
    pub fn st_name(&self) -> &'a str {
        if self.blank { "" } else { self.name }
    }

    /// Returns the version in the image of this description, which may have no versions.
    pub fn version_in(&self, spec: &Spec<'_>) -> Option<&'a str> {
        if spec.versions { self.version } else { None }
    }

    pub(crate) fn hashed(&self) -> bool {
        self.bind != LOCAL && self.shndx != UNDEF
    }
}

/// A part of an image after its headers.
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

    /// Returns all parts in that order, but these last.
    pub fn with_last(last: &[Self]) -> Vec<Self> {
        Self::ALL
            .into_iter()
            .filter(|part| !last.contains(part))
            .chain(last.iter().copied())
            .collect()
    }
}

/// The description of an image; by default a 64-bit one for x86_64 without symbols.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the properties of an image are independent"
)]
pub struct Spec<'a> {
    /// Whether it is `ELFCLASS64`.
    pub wide: bool,
    /// By default this machine's byte order: the parser reads no other.
    pub big_endian: bool,
    pub machine: u16,
    pub symbols: Vec<Sym<'a>>,
    pub sysv_hash: bool,
    pub gnu_hash: bool,
    /// Whether it has `DT_VERSYM` and `DT_VERDEF`.
    pub versions: bool,
    /// The load address.
    pub p_vaddr: u64,
    pub p_offset: usize,
    /// Whether the null symbol and absolute symbols are relocated, as by QEMU's loader.
    pub relocated: bool,
    /// Whether the symbols' values are odd.
    pub thumb: bool,
    /// The types of the program headers.
    pub segments: Vec<u32>,
    pub order: Vec<Part>,
    /// The least size. Padding goes before the last part.
    pub extent: usize,
}

impl Default for Spec<'_> {
    fn default() -> Self {
        Self {
            wide: true,
            big_endian: cfg!(target_endian = "big"),
            machine: 62,
            symbols: vec![],
            sysv_hash: true,
            gnu_hash: true,
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

/// Returns the names of the symbols that the table of an architecture has.
pub fn names(abi: &Abi) -> BTreeSet<&'static str> {
    let functions = abi.functions().into_iter().map(|(_, function)| function);
    functions
        .flat_map(|function| function.candidates)
        .map(|symbol| symbol.name)
        .collect()
}

impl<'a> Spec<'a> {
    /// Describes an image of an architecture with these functions.
    pub fn of(abi: &Abi, names: impl IntoIterator<Item = &'a str>) -> Self {
        let symbols = names
            .into_iter()
            .map(|name| Sym::func(name, abi.version))
            .collect();
        Self {
            wide: abi.class == 2,
            machine: abi.machine,
            symbols,
            ..Self::default()
        }
    }

    /// Returns whether the words of `DT_HASH` have 64 bits, as on S/390 and Alpha.
    pub fn has_wide_hash(&self) -> bool {
        self.wide && WIDE_HASH.contains(&self.machine)
    }

    pub fn build(&self) -> Built<'a> {
        // Sizes do not depend on offsets: the first draft gives all sizes, the second all offsets.
        let draft = (0..2).fold(Built::default(), |draft, _| self.write(&draft));
        self.write(&draft)
    }

    fn write(&self, draft: &Built<'_>) -> Built<'a> {
        let Self {
            wide, big_endian, ..
        } = *self;
        let mut image = Built {
            wide,
            big_endian,
            symbols: self.placed(draft),
            ..Built::default()
        };
        let versions = self.version_names();
        let strings = strings(
            image
                .symbols
                .iter()
                .map(Sym::st_name)
                .chain(versions.iter().copied()),
        );
        let tags = self.tags(draft, versions.len(), strings.len());
        tables::write_headers(&mut image, self, draft, tags.len());
        image.bytes.resize(image.bytes.len().max(self.p_offset), 0);
        for part in &self.order {
            image.align(if *part == Part::Text { 16 } else { 8 });
            if self.order.last() == Some(part) {
                let size = draft.bytes.len().saturating_sub(draft.at(*part));
                let start = self.extent.saturating_sub(size);
                image.bytes.resize(image.bytes.len().max(start), 0);
            }
            image.parts[*part as usize] = image.bytes.len();
            match part {
                Part::Hash if self.sysv_hash => {
                    tables::write_hash(&mut image, self.has_wide_hash());
                }
                Part::GnuHash if self.gnu_hash => tables::write_gnu_hash(&mut image),
                Part::Symtab => tables::write_symtab(&mut image, &strings, self.null_value()),
                Part::Strtab => image.bytes.extend(strings.as_bytes()),
                Part::Versym if self.versions => tables::write_versym(&mut image, &versions),
                Part::Verdef if self.versions => {
                    tables::write_verdef(&mut image, &versions, &strings);
                }
                Part::Dynamic => tables::write_dynamic(&mut image, &tags),
                Part::Text => image
                    .bytes
                    .resize(image.bytes.len() + self.code_size(), 0xcc),
                Part::Hash | Part::GnuHash | Part::Versym | Part::Verdef => {}
            }
        }
        image
    }

    /// Returns the address of an offset.
    pub(crate) fn address(&self, offset: usize) -> u64 {
        let address = self
            .p_vaddr
            .wrapping_add(offset as u64)
            .wrapping_sub(self.p_offset as u64);
        if self.wide {
            address
        } else {
            address & 0xffff_ffff
        }
    }

    fn null_value(&self) -> u64 {
        if self.relocated { self.p_vaddr } else { 0 }
    }

    fn code_size(&self) -> usize {
        let mut size = 0;
        for symbol in &self.symbols {
            if symbol.value == Value::Next {
                size += CODE as usize;
            }
        }
        size
    }

    /// Returns the symbols with their values, in the order that `DT_GNU_HASH` needs: unhashed ones
    /// first.
    fn placed(&self, draft: &Built<'_>) -> Vec<Sym<'a>> {
        let mut next = draft.at(Part::Text);
        let mut last = 0;
        let mut symbols = self.symbols.clone();
        for symbol in &mut symbols {
            match symbol.value {
                Value::Next => {
                    last = self.address(next) | u64::from(self.thumb);
                    next += CODE as usize;
                }
                Value::Alias => {}
                Value::Exactly(value) if symbol.shndx == ABS => {
                    last = value.wrapping_add(self.null_value());
                }
                Value::Exactly(value) => last = value,
            }
            symbol.value = Value::Exactly(last);
        }
        symbols.sort_by_key(|symbol| {
            (
                symbol.hashed(),
                self.gnu_hash.then(|| tables::gnu_bucket(symbol)),
            )
        });
        symbols
    }

    /// Returns the image's own name, then the versions of the symbols.
    fn version_names(&self) -> Vec<&'a str> {
        let mut names = vec![SONAME];
        for version in self.symbols.iter().filter_map(|symbol| symbol.version) {
            if !names.contains(&version) {
                names.push(version);
            }
        }
        names
    }

    /// Returns the dynamic section: name, tag, value.
    fn tags(
        &self,
        draft: &Built<'_>,
        versions: usize,
        strings: usize,
    ) -> Vec<(&'static str, u64, u64)> {
        let address = |part| self.address(draft.at(part));
        let tags = [
            (
                self.gnu_hash,
                "DT_GNU_HASH",
                0x6fff_fef5,
                address(Part::GnuHash),
            ),
            (self.sysv_hash, "DT_HASH", 4, address(Part::Hash)),
            (true, "DT_STRTAB", 5, address(Part::Strtab)),
            (true, "DT_SYMTAB", 6, address(Part::Symtab)),
            (true, "DT_STRSZ", 10, strings as u64),
            (true, "DT_SYMENT", 11, if self.wide { 24 } else { 16 }),
            (
                self.versions,
                "DT_VERDEF",
                0x6fff_fffc,
                address(Part::Verdef),
            ),
            (self.versions, "DT_VERDEFNUM", 0x6fff_fffd, versions as u64),
            (
                self.versions,
                "DT_VERSYM",
                0x6fff_fff0,
                address(Part::Versym),
            ),
            (true, "DT_NULL", 0, 0),
        ];
        tags.into_iter()
            .filter(|tag| tag.0)
            .map(|(_, name, tag, value)| (name, tag, value))
            .collect()
    }
}

/// Makes a string table, longest string first. As linkers do, stores a string that ends a longer
/// one within it.
fn strings<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.collect();
    names.sort_by_key(|name| (std::cmp::Reverse(name.len()), *name));
    names.dedup();
    names
        .into_iter()
        .fold("\0".into(), |mut strings: String, name| {
            if !strings.contains(&format!("{name}\0")) {
                strings.extend([name, "\0"]);
            }
            strings
        })
}
