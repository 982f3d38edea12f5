//! [`ParseError`]: why the bytes are not an image that can be read.

use core::fmt;

/// Why the bytes are not an image that can be walked. Field and table names are those of the ELF
/// specification (System V ABI, gabi chapters 4 and 5).
///
/// ```
/// use vdso_time::elf::{Image, ParseError};
///
/// assert_eq!(Image::parse(b"#!/bin/sh").unwrap_err(), ParseError::NotElf);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParseError {
    /// The bytes do not begin with the ELF magic number.
    NotElf,
    /// `EI_CLASS` is neither `ELFCLASS32` nor `ELFCLASS64`.
    Class,
    /// `EI_DATA` is neither `ELFDATA2LSB` nor `ELFDATA2MSB`.
    ByteOrder,
    /// The bytes end before the image does.
    Truncated,
    /// The program headers are too small, or do not lie in the image's first 4 KiB.
    ProgramHeaders,
    /// There is no `PT_DYNAMIC`.
    NoDynamicSegment,
    /// No `PT_LOAD` holds the dynamic segment, or the one that does has more bytes in the file than in memory.
    LoadSegment,
    /// The image is larger than 1 MiB.
    TooLarge,
    /// There is no `DT_SYMTAB`, it lies outside, or `DT_SYMENT` is not the size of a symbol.
    SymbolTable,
    /// There is no `DT_STRTAB`, it lies outside, or no string in it ends.
    StringTable,
    /// `DT_HASH` lies outside, or is larger than the image.
    SysvHash,
    /// `DT_GNU_HASH` lies outside, or a chain in it does not end.
    GnuHash,
    /// `DT_VERSYM` or `DT_VERDEF` lies outside, or the definitions are malformed or too many.
    Versions,
}

impl ParseError {
    /// Every error, in the order of its number.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        allow(dead_code, reason = "only a running process records its errors")
    )]
    pub(crate) const ALL: [Self; 13] = [
        Self::NotElf,
        Self::Class,
        Self::ByteOrder,
        Self::Truncated,
        Self::ProgramHeaders,
        Self::NoDynamicSegment,
        Self::LoadSegment,
        Self::TooLarge,
        Self::SymbolTable,
        Self::StringTable,
        Self::SysvHash,
        Self::GnuHash,
        Self::Versions,
    ];
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotElf => "not an ELF image",
            Self::Class => "unknown ELF class",
            Self::ByteOrder => "unknown ELF byte order",
            Self::Truncated => "the image is cut short",
            Self::ProgramHeaders => "malformed program headers",
            Self::NoDynamicSegment => "no PT_DYNAMIC",
            Self::LoadSegment => "no sound PT_LOAD around PT_DYNAMIC",
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
