//! The vDSO of this process: where it is, and what is in it.

#![allow(unsafe_code, reason = "the contract of from_ptr, and locate, which keeps it")]

use core::fmt;
use core::ptr;

use super::{auxv, mapping, process};
pub use crate::elf::ParseError;
use crate::elf::{Format, Image, ParsedImage, Symbol, Symbols};
use crate::errno::Errno;

/// An image that is mapped into this process.
///
/// ```
/// use vdso_time::vdso::Vdso;
///
/// if let Ok(vdso) = Vdso::locate() {
///     println!("{} bytes at {:p}", vdso.size(), vdso.base());
///     for symbol in vdso.symbols() {
///         println!("{:p} {:?}", vdso.address(&symbol), symbol.name());
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Vdso<'a> {
    image: Image<'a>,
}

impl Vdso<'static> {
    /// Finds the vDSO that the kernel mapped, and walks it once.
    ///
    /// It never allocates, takes no lock and leaves `errno` alone, so it may be called in a signal handler. Each page is
    /// seen to be readable, by a system call of 0.1 us, before it is read.
    ///
    /// It is safe because taking the vDSO away again is not: who unmaps or moves it (`munmap`, `mremap`: unsafe acts) must do
    /// so before the first use of this crate, not after, and must not put memory in its place that is written to.
    ///
    /// # Errors
    /// [`LocateError`] says why there is none; the clock functions work all the same.
    ///
    /// ```
    /// use vdso_time::vdso::{LocateError, Vdso};
    ///
    /// match Vdso::locate() {
    ///     Ok(vdso) => assert!(vdso.size() > 0),
    ///     Err(error) => assert_eq!(error, LocateError::Absent),
    /// }
    /// ```
    pub fn locate() -> Result<Self, LocateError> {
        Ok(Self { image: Image { parsed: find()? } })
    }
}

/// Finds the vDSO and parses it, if it is of this format.
pub(crate) fn find<F: Format>() -> Result<ParsedImage<'static, F>, LocateError> {
    let vdso = auxv::sysinfo_ehdr().ok_or(LocateError::Absent)?;
    let check = |page| match process::probe(page) {
        Ok(()) => Ok(()),
        Err(Errno::EFAULT) => Err(LocateError::Unmapped),
        Err(_) if vdso.trusted => Ok(()),
        Err(_) => Err(LocateError::Unchecked),
    };
    // SAFETY: `check` asks the kernel, or trusts getauxval where a sandbox denies that. Nobody may unmap the
    // vDSO after the first use (`locate`), and nobody can write to it.
    unsafe { mapping::image(ptr::with_exposed_provenance(vdso.address), check) }
}

/// The address of a symbol of an image where it is mapped, by its value. It wraps.
pub(crate) fn address<F: Format>(image: &ParsedImage<'_, F>, value: u64) -> usize {
    value.wrapping_sub(image.origin()).wrapping_add(image.base().expose_provenance() as u64) as usize
}

impl<'a> Vdso<'a> {
    /// Parses the image at `base`.
    ///
    /// # Safety
    /// `base` must be the start of a page. The 4096 bytes from `base` on are always read, so they must be
    /// readable, whatever they hold. If they begin an image, all of it must be readable: as far as its
    /// `PT_LOAD` says, at most 1 MiB ([`Image::extent`]). None of these bytes may change during `'a`.
    ///
    /// # Errors
    /// [`ParseError`] if the bytes are no image that can be walked.
    ///
    /// ```
    /// use vdso_time::vdso::Vdso;
    ///
    /// if let Ok(vdso) = Vdso::locate() {
    ///     // SAFETY: the vDSO is mapped there, and stays.
    ///     let again = unsafe { Vdso::from_ptr(vdso.base()) }?;
    ///     assert_eq!(again.size(), vdso.size());
    /// }
    /// # Ok::<(), vdso_time::vdso::ParseError>(())
    /// ```
    pub unsafe fn from_ptr(base: *const u8) -> Result<Self, ParseError> {
        // SAFETY: the caller promises that the bytes which pass the check, all of them, are readable.
        let parsed = unsafe { mapping::image(base, |_| Ok::<(), ParseError>(())) }?;
        Ok(Self { image: Image { parsed } })
    }

    /// Where the image begins.
    #[must_use]
    pub fn base(&self) -> *const u8 {
        self.image.parsed.base()
    }

    /// How many bytes the image has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.image.parsed.size()
    }

    /// The image, to walk it.
    ///
    /// ```
    /// use vdso_time::vdso::Vdso;
    ///
    /// if let Ok(vdso) = Vdso::locate() {
    ///     println!("e_machine {}", vdso.image().machine());
    /// }
    /// ```
    #[must_use]
    pub const fn image(&self) -> Image<'a> {
        self.image
    }

    /// The symbols that can be called, as [`Image::symbols`] has them.
    #[must_use]
    pub fn symbols(&self) -> Symbols<'a> {
        self.image.symbols()
    }

    /// The address of the symbol that [`Image::symbol`] finds (bit 0 set for Thumb code on arm): a function, to be
    /// called with the signature that the kernel gives it (vdso(7)).
    ///
    /// ```
    /// use vdso_time::vdso::Vdso;
    ///
    /// if let Ok(vdso) = Vdso::locate() {
    ///     if let Some(time) = vdso.symbol("__vdso_time", Some("LINUX_2.6")) {
    ///         assert!(vdso.contains(time.addr()));
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn symbol(&self, name: &str, version: Option<&str>) -> Option<*const ()> {
        let parsed = &self.image.parsed;
        Some(ptr::with_exposed_provenance(address(parsed, parsed.find(name, version)?.value)))
    }

    /// The address of a symbol of this image.
    #[must_use]
    pub fn address(&self, symbol: &Symbol<'_>) -> *const () {
        ptr::with_exposed_provenance(address(&self.image.parsed, symbol.value()))
    }

    /// The symbol whose code has this program counter: for profilers and unwinders, whose samples land in the vDSO. Of two
    /// names for the same code, the global one.
    ///
    /// ```
    /// use vdso_time::vdso::Vdso;
    ///
    /// if let Ok(vdso) = Vdso::locate() {
    ///     if let Some(getcpu) = vdso.symbol("__vdso_getcpu", None) {
    ///         assert_eq!(vdso.symbol_at(getcpu.addr()).unwrap().name(), c"__vdso_getcpu");
    ///     }
    ///     assert!(vdso.symbol_at(0).is_none());
    /// }
    /// ```
    #[must_use]
    pub fn symbol_at(&self, pc: usize) -> Option<Symbol<'a>> {
        if !self.contains(pc) {
            return None;
        }
        let parsed = &self.image.parsed;
        let offset = pc.wrapping_sub(self.base().addr()) as u64;
        parsed.symbol(parsed.at(offset.wrapping_add(parsed.origin()))?)
    }

    /// Whether an address, a program counter say, lies in the image.
    ///
    /// ```
    /// use vdso_time::vdso::Vdso;
    ///
    /// if let Ok(vdso) = Vdso::locate() {
    ///     assert!(vdso.contains(vdso.base().addr()));
    ///     assert!(!vdso.contains(std::ptr::from_ref(&vdso).addr()));
    /// }
    /// ```
    #[must_use]
    pub fn contains(&self, pc: usize) -> bool {
        pc.wrapping_sub(self.base().addr()) < self.size()
    }
}

/// Says where the vDSO is, before the first call: for a program with its own `_start`, which has the auxiliary vector on
/// its stack. Null says that the vector has no `AT_SYSINFO_EHDR`. Only the first word counts, and after the first look for
/// the vDSO, which every first call of a function makes, none does: it is too late, and harmless.
///
/// # Safety
/// `ehdr` must be null, or the value of this process's `AT_SYSINFO_EHDR`.
///
/// ```
/// # use vdso_time::vdso::Vdso;
/// # let at_sysinfo_ehdr = Vdso::locate().map_or(std::ptr::null(), |vdso| vdso.base());
/// // SAFETY: the value is the auxiliary vector's.
/// unsafe { vdso_time::init(at_sysinfo_ehdr) };
/// assert!(vdso_time::time() > 1_700_000_000);
/// ```
pub unsafe fn init(ehdr: *const u8) {
    auxv::give(ehdr.expose_provenance());
}

/// Why this process has no vDSO that can be walked.
///
/// ```
/// use vdso_time::vdso::{LocateError, Vdso};
///
/// match Vdso::locate() {
///     Ok(vdso) => println!("vDSO at {:p}", vdso.base()),
///     Err(LocateError::Absent) => println!("the kernel, or valgrind, gave this process no vDSO"),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LocateError {
    /// The auxiliary vector has no `AT_SYSINFO_EHDR`, or its value is 0.
    Absent,
    /// `AT_SYSINFO_EHDR` points to memory that cannot be read: the vDSO was unmapped or moved.
    Unmapped,
    /// A sandbox denied the check that the memory can be read, and the address did not come from `getauxval`.
    Unchecked,
    /// What `AT_SYSINFO_EHDR` points to is not an image that can be walked.
    Malformed(ParseError),
}

impl fmt::Display for LocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("no vDSO: AT_SYSINFO_EHDR is missing or 0"),
            Self::Unmapped => f.write_str("no vDSO: AT_SYSINFO_EHDR points to unreadable memory"),
            Self::Unchecked => f.write_str("no vDSO: a sandbox denied the check of its address"),
            Self::Malformed(error) => write!(f, "malformed vDSO: {error}"),
        }
    }
}

impl core::error::Error for LocateError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Malformed(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ParseError> for LocateError {
    fn from(error: ParseError) -> Self {
        Self::Malformed(error)
    }
}
