//! [`ParseError`]: why the bytes are not an image.

use core::fmt;

/// Why the bytes are not an image that can be parsed.
///
/// Fields and tables have the names of the ELF specification (System V ABI, chapters 4 and 5).
/// "Outside" means outside of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParseError {
    /// The bytes do not begin with the ELF magic number.
    NotElf,
    /// `EI_CLASS` is neither `ELFCLASS32` nor `ELFCLASS64`.
    Class,
    /// `EI_DATA` is not this process's byte order. No kernel maps such an image.
    ByteOrder,
    /// The bytes end before the image does.
    Truncated,
    /// The program headers are too small, or lie outside of the image's first 4 KiB.
    ProgramHeaders,
    /// There is no `PT_DYNAMIC`.
    NoDynamicSegment,
    /// No `PT_LOAD` contains the dynamic segment, or the one that does has more bytes in the file
    /// than in memory.
    LoadSegment,
    /// The image is larger than 1 MiB.
    TooLarge,
    /// `DT_SYMTAB` is missing or lies outside, or `DT_SYMENT` is not the size of a symbol.
    SymbolTable,
    /// `DT_STRTAB` is missing, lies outside or contains no NUL.
    StringTable,
    /// `DT_HASH` lies outside or is larger than the image.
    SysvHash,
    /// `DT_GNU_HASH` lies outside or has a chain that does not end.
    GnuHash,
    /// `DT_VERSYM` or `DT_VERDEF` lies outside, is malformed or has too many definitions.
    Versions,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotElf => "not an ELF image",
            Self::Class => "unknown ELF class",
            Self::ByteOrder => "the byte order is not this process's",
            Self::Truncated => "the bytes end before the image does",
            Self::ProgramHeaders => "malformed program headers",
            Self::NoDynamicSegment => "no PT_DYNAMIC",
            Self::LoadSegment => "no well-formed PT_LOAD contains PT_DYNAMIC",
            Self::TooLarge => "larger than 1 MiB",
            Self::SymbolTable => "malformed or missing DT_SYMTAB",
            Self::StringTable => "malformed or missing DT_STRTAB",
            Self::SysvHash => "malformed DT_HASH",
            Self::GnuHash => "malformed DT_GNU_HASH",
            Self::Versions => "malformed DT_VERSYM or DT_VERDEF",
        })
    }
}

impl core::error::Error for ParseError {}
