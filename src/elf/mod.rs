//! The parser of ELF images: bytes in, symbols out.
//!
//! It reads images of any machine, class and byte order on any machine. It trusts no byte and has
//! no unsafe code. It reads what a loader reads: the program headers, `DT_SYMTAB`, `DT_STRTAB` and,
//! if present, the hash and version tables. It does not read section headers, because they need not
//! be in memory.
//!
//! The parser is generic in the format of the numbers. A first call parses the image of its own
//! process as `Native`, whose class and byte order are constants, so its code has no branch on
//! them. [`Image`] is any image, so it is parsed as `Any`. Most of these have the process's format,
//! too. So `Vdso` and each lookup ask once, and then have code in which that format is a constant
//! (`Format::OWN`). With a branch at each number, finding a function took 1.6 times as long. One
//! type for both was tried: the compiler lost sight of the constant, and a first call took a third
//! more code.
//!
//! The work is bounded for any bytes. A step is the read of a number or of one byte of a string.
//! There are at most, for each byte of the image:
//!
//! - 3 steps in [`Image::parse`];
//! - 136 in one [`Image::symbol`];
//! - 36 in the first call of any clock function, which looks up the symbols of all five;
//! - 134 in one step of [`Image::symbols`], and in all its steps together.
//!
//! A symbol has at least 16 bytes, and costs at most 86 numbers (6 of its own, 5 of each of 16
//! version definitions) and two strings. At most 1024 bytes of a string are read.

// The parser exists to make these impossible.
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used
)]
#![deny(clippy::panic)]
// `process/mapping.rs` says why.
#![allow(clippy::inline_always, reason = "the first call is one piece of code")]

use core::iter::FusedIterator;

mod error;
mod hash;
mod headers;
mod image;
mod layout;
mod steps;
mod symbol;
mod version;

pub use error::ParseError;
pub(crate) use headers::ProgramHeaders;
pub(crate) use image::ParsedImage;
pub(crate) use layout::{Any, Bytes, Format, Native};
#[cfg(vdso_time_steps)]
pub(crate) use steps::TAKEN;
pub use symbol::Symbol;

/// An ELF image: a vDSO, or a shared object with one segment.
///
/// It consists of the loaded segment, the part that a process has in memory. All tables must lie in
/// it.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    pub(crate) parsed: ParsedImage<'a, Any>,
}

impl<'a> Image<'a> {
    /// Parses the headers and finds the tables. More bytes may follow the image.
    ///
    /// # Errors
    ///
    /// [`ParseError`] names the part that is missing, malformed or outside.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use vdso_time::elf::Image;
    ///
    /// let bytes = std::fs::read("vdso.so")?;
    /// for symbol in Image::parse(&bytes)?.symbols() {
    ///     println!("{:#x} {:?}", symbol.value(), symbol.name());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let headers = ProgramHeaders::read(Bytes::of_image(bytes)?)?;
        let image = bytes
            .get(..headers.load.end())
            .ok_or(ParseError::Truncated)?;
        Ok(Self {
            parsed: ParsedImage::new(&headers, image)?,
        })
    }

    /// Returns the size of the image in bytes, at most 1 MiB. It reads only the first 4 KiB.
    ///
    /// It is the end of the loaded segment. If the program headers lie after that,
    /// [`Image::parse`] needs them too.
    ///
    /// # Errors
    ///
    /// [`ParseError`], if the headers are malformed.
    pub fn extent(head: &[u8]) -> Result<usize, ParseError> {
        Ok(ProgramHeaders::<Any>::read(Bytes::of_image(head)?)?
            .load
            .end())
    }

    /// Returns `e_machine`: 3 is i386, 40 arm, 62 `x86_64`, 183 aarch64.
    #[must_use]
    pub fn machine(&self) -> u16 {
        self.parsed.machine()
    }

    /// Returns `EI_CLASS`: 1 is `ELFCLASS32`, 2 is `ELFCLASS64`.
    #[must_use]
    pub fn class(&self) -> u8 {
        self.parsed.class()
    }

    /// Returns `p_vaddr` of the loaded segment.
    ///
    /// It is 0 in Linux's images, but not if the image is prelinked (gVisor) or was relocated when
    /// it was loaded (QEMU).
    #[must_use]
    pub fn load_address(&self) -> u64 {
        self.parsed.load.vaddr
    }

    /// Returns the symbols that can be called.
    ///
    /// These are `STT_FUNC` and `STT_NOTYPE`, `STB_GLOBAL` and `STB_WEAK`, defined in the image and
    /// not absolute. They include symbols whose name the kernel blanked (see
    /// `FallbackReason::BlankedNames`).
    #[must_use]
    pub fn symbols(self) -> impl FusedIterator<Item = Symbol<'a>> + Clone {
        let image = self.parsed;
        image
            .entries()
            .filter_map(move |entry| image.symbol(entry))
            .fuse()
    }

    /// Returns the first of [`symbols()`](Self::symbols) with this name and version.
    ///
    /// Without a version, and in an image without versions, only the name counts. A blank name is
    /// never found.
    #[must_use]
    pub fn symbol(&self, name: &str, version: Option<&str>) -> Option<Symbol<'a>> {
        self.parsed.symbol(self.parsed.find(name, version)?)
    }
}
