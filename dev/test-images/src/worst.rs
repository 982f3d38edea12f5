//! Images that cost the parser the most for their size.

use crate::{Built, Part, Spec, Sym, Value};

/// The bytes of a symbol in a 32-bit image: its entry, and its index in `DT_VERSYM`.
const SYMBOL: usize = 16 + 2;

/// The bytes that the strings and the other tables take at most.
const REST: usize = 40_000;

/// Describes as many symbols with this name as fit, most of them of the last version.
fn crowded<'a>(size: usize, name: &'a str, versions: &'a [String]) -> Spec<'a> {
    let count = (size - name.len() - REST) / SYMBOL;
    let last = versions.len() - 1;
    let symbol = |index: usize| Sym {
        value: Value::Exactly(0x40),
        ..Sym::func(name, &versions[index.min(last)])
    };
    Spec {
        wide: false,
        machine: 40,
        symbols: (0..count).map(symbol).collect(),
        order: Part::ALL[..7].to_vec(),
        sysv_hash: false,
        gnu_hash: false,
        ..Spec::default()
    }
}

/// Returns as many versions as an image may have, each with the longest name. They differ only in
/// their last bytes.
fn long_versions() -> Vec<String> {
    let start = "v".repeat(1021);
    (0..15).map(|index| format!("{start}{index:02}")).collect()
}

/// Returns an image of about this size, whose symbols have the longest name and versions.
pub fn longest_names(size: usize) -> Vec<u8> {
    crowded(size, &"n".repeat(1023), &long_versions())
        .build()
        .bytes
}

/// Returns an image of about this size, whose symbols have the right name and another version.
pub fn other_versions(size: usize) -> Vec<u8> {
    crowded(size, "__vdso_clock_gettime", &long_versions())
        .build()
        .bytes
}

/// Returns an image of about this size, whose symbols have a name that is too long: the longer, the
/// larger the image is.
pub fn hidden_symbols(size: usize) -> Vec<u8> {
    crowded(size, &"h".repeat(size / 16), &["V".to_owned()])
        .build()
        .bytes
}

/// Returns an image of this size whose dynamic section and string table both reach its end, and
/// whose string table has no NUL but the first one.
pub fn longest_tables(size: usize) -> Vec<u8> {
    let mut built: Built<'_> = Spec {
        wide: false,
        symbols: vec![Sym {
            value: Value::Exactly(0x40),
            ..Sym::func("clock", "V")
        }],
        order: vec![Part::Symtab, Part::Dynamic, Part::Strtab],
        sysv_hash: false,
        gnu_hash: false,
        versions: false,
        ..Spec::default()
    }
    .build();
    let strtab = built.at(Part::Strtab);
    let dynamic = built.at(Part::Dynamic);
    built.remove("DT_NULL");
    for byte in &mut built.bytes[strtab + 1..] {
        *byte = (*byte).max(1);
    }
    built.bytes.resize(size, 1);
    built.set("DT_STRSZ", (size - strtab) as u64);
    built.set("PT_DYNAMIC.p_filesz", (size - dynamic) as u64);
    built.resize(size as u64);
    built.bytes
}
