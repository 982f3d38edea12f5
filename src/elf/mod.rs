//! The walker: an ELF image as bytes in, symbols as offsets out. It reads any machine's image on any machine
//! (both classes, both byte orders), believes nothing, and has no unsafe code.
//!
//! What it needs of an image is what a loader needs: program headers, and the dynamic section's
//! `DT_SYMTAB` and `DT_STRTAB`. Section headers are never read, for nothing says that they are in memory.
//!
//! Whatever the bytes say, a walk ends soon. A step is the read of a number or of one byte of a string; between two of them
//! lies a small, constant amount of work. There are at most
//! - 3 steps for each byte handed to [`Image::parse`];
//! - 136 for each byte of the image in one [`Image::symbol`];
//! - 36 in the first call of any clock function, which looks for the symbols of all five;
//! - 134 in one step of [`Image::symbols`], and in all its steps together.
//!
//! For a symbol has at least 16 bytes, and costs at most 86 numbers (6 of its own, 5 of each of 16 definitions of versions)
//! and two strings, of which no more than 1024 bytes are read.
//!
//! ```no_run
//! use vdso_time::elf::Image;
//!
//! let bytes = std::fs::read("vdso.so")?;
//! let image = Image::parse(&bytes)?;
//! for symbol in image.symbols() {
//!     println!("{:#x} {:?}", symbol.value(), symbol.name());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The point of the walker is that these cannot happen.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]
#![deny(clippy::panic)]

mod dynamic;
mod error;
mod hash;
mod layout;
mod parsed;
mod steps;
mod symbol;
mod version;

pub(crate) use dynamic::ProgramHeaders;
pub use error::ParseError;
pub use hash::HashTables;
pub(crate) use layout::{Any, Format, Native};
pub(crate) use parsed::ParsedImage;
#[cfg(vdso_time_steps)]
pub(crate) use steps::TAKEN;
pub use symbol::{Symbol, SymbolKind, Symbols};

/// An ELF image: a vDSO, or a shared object of one segment.
///
/// Only the segment that is loaded is looked at, and every table must lie in it: that is the part that a
/// process has in memory.
///
/// ```
/// use vdso_time::vdso::Vdso;
///
/// if let Ok(vdso) = Vdso::locate() {
///     let image = vdso.image();
///     println!("e_machine {}, {} symbols", image.machine(), image.symbols().count());
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    pub(crate) parsed: ParsedImage<'a, Any>,
}

impl<'a> Image<'a> {
    /// Reads the headers and finds the tables. The bytes may go on behind the image.
    ///
    /// # Errors
    /// [`ParseError`] names the part that is missing, malformed or outside.
    ///
    /// ```
    /// use vdso_time::elf::{Image, ParseError};
    ///
    /// assert_eq!(Image::parse(b"").unwrap_err(), ParseError::NotElf);
    /// assert_eq!(Image::parse(b"\x7fELF\x02\x01").unwrap_err(), ParseError::ProgramHeaders);
    /// ```
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Ok(Self { parsed: ParsedImage::parse(bytes, ProgramHeaders::read(bytes)?)? })
    }

    /// How many bytes from its start the image takes, judged from no more than its first 4 KiB: where the segment that is
    /// loaded ends, at most 1 MiB. Its program headers lie in it, or [`Image::parse`] needs those too.
    ///
    /// # Errors
    /// [`ParseError`], as [`Image::parse`] would say of the headers.
    ///
    /// ```
    /// use vdso_time::elf::{Image, ParseError};
    ///
    /// assert_eq!(Image::extent(&[0; 4096]), Err(ParseError::NotElf));
    /// ```
    pub fn extent(head: &[u8]) -> Result<usize, ParseError> {
        ProgramHeaders::<Any>::read(head).map(|headers| headers.extent())
    }

    /// `e_machine`: 3 is i386, 40 arm, 62 `x86_64`, 183 aarch64.
    ///
    /// ```
    /// # use vdso_time::vdso::Vdso;
    /// if let Ok(vdso) = Vdso::locate() {
    ///     println!("e_machine {}", vdso.image().machine());
    /// }
    /// ```
    #[must_use]
    pub fn machine(&self) -> u16 {
        self.parsed.machine()
    }

    /// `EI_CLASS`: 1 is `ELFCLASS32`, 2 is `ELFCLASS64`.
    #[must_use]
    pub fn class(&self) -> u8 {
        self.parsed.class()
    }

    /// Which hash tables the image has.
    #[must_use]
    pub fn hash_tables(&self) -> HashTables {
        self.parsed.hash_tables()
    }

    /// `p_vaddr` of the loaded segment: 0 in Linux's images; not 0 if the image is prelinked (gVisor), or was
    /// relocated as it was loaded (QEMU).
    #[must_use]
    pub fn load_address(&self) -> u64 {
        self.parsed.load_address()
    }

    /// The symbols that can be called: `STT_FUNC` and `STT_NOTYPE`, `STB_GLOBAL` and `STB_WEAK`, defined in the
    /// image and not absolute. One whose name is blank (see `FallbackReason::BlankedNames`) is
    /// among them.
    #[must_use]
    pub const fn symbols(&self) -> Symbols<'a> {
        Symbols::new(self.parsed)
    }

    /// The first of [`symbols()`](Self::symbols) with this name and, if one is given, this version. An image without
    /// version tables has no versions to compare: there the name alone decides. A blank name is never found.
    ///
    /// ```
    /// # use vdso_time::vdso::Vdso;
    /// # if let Ok(vdso) = Vdso::locate() {
    /// let image = vdso.image();
    /// if let Some(symbol) = image.symbol("__vdso_time", Some("LINUX_2.6")) {
    ///     assert_eq!(symbol.name(), c"__vdso_time");
    /// }
    /// assert!(image.symbol("__vdso_time", Some("LINUX_99")).is_none());
    /// # }
    /// ```
    #[must_use]
    pub fn symbol(&self, name: &str, version: Option<&str>) -> Option<Symbol<'a>> {
        self.parsed.symbol(self.parsed.find(name, version)?)
    }
}
