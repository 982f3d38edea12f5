//! [`ParseError`]: why the bytes are not an image.

use core::fmt;

macro_rules! parse_errors {
    ($($(#[$doc:meta])+ $Error:ident: $text:literal,)+) => {
        /// Why the bytes are not an image that can be parsed.
        ///
        /// Fields and tables have the names of the ELF specification (System V ABI, chapters 4 and
        /// 5).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ParseError {
            $($(#[$doc])+ $Error,)+
        }

        impl ParseError {
            /// Every error, in the order of its number.
            pub(crate) const ALL: &[Self] = &[$(Self::$Error),+];
        }

        impl fmt::Display for ParseError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$Error => $text),+ })
            }
        }
    };
}

parse_errors! {
    /// The bytes do not begin with the ELF magic number.
    NotElf: "not an ELF image",
    /// `EI_CLASS` is neither `ELFCLASS32` nor `ELFCLASS64`.
    Class: "unknown ELF class",
    /// `EI_DATA` is neither `ELFDATA2LSB` nor `ELFDATA2MSB`.
    ByteOrder: "unknown ELF byte order",
    /// The bytes end before the image does.
    Truncated: "the bytes end before the image does",
    /// The program headers are too small, or lie outside of the image's first 4 KiB.
    ProgramHeaders: "malformed program headers",
    /// There is no `PT_DYNAMIC`.
    NoDynamicSegment: "no PT_DYNAMIC",
    /// No `PT_LOAD` contains the dynamic segment, or it has more bytes in the file than in memory.
    LoadSegment: "no well-formed PT_LOAD around PT_DYNAMIC",
    /// The image is larger than 1 MiB.
    TooLarge: "larger than 1 MiB",
    /// `DT_SYMTAB` is missing or lies outside, or `DT_SYMENT` is not the size of a symbol.
    SymbolTable: "malformed or missing DT_SYMTAB",
    /// `DT_STRTAB` is missing, lies outside or has no string that ends.
    StringTable: "malformed or missing DT_STRTAB",
    /// `DT_HASH` lies outside or is larger than the image.
    SysvHash: "malformed DT_HASH",
    /// `DT_GNU_HASH` lies outside or has a chain that does not end.
    GnuHash: "malformed DT_GNU_HASH",
    /// `DT_VERSYM` or `DT_VERDEF` lies outside, is malformed or has too many definitions.
    Versions: "malformed DT_VERSYM or DT_VERDEF",
}

impl core::error::Error for ParseError {}
