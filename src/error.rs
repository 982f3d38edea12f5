//! Why an image could not be read, why there is no vDSO, and what the kernel answered.

use core::fmt;
use core::num::NonZeroU16;
use core::time::Duration;

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
    #[cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code))]
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

/// An error number of the kernel, `1..=4095` (errno(3)).
///
/// ```
/// use vdso_time::{ClockId, Errno, clock_gettime};
///
/// let error = clock_gettime(ClockId::from_raw(99)).unwrap_err();
/// assert_eq!(error, Errno::EINVAL);
/// assert_eq!(error.raw_os_error(), 22);
/// assert_eq!(error.to_string(), "EINVAL");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(NonZeroU16);

impl Errno {
    /// Operation not permitted: a sandbox denied the call.
    pub const EPERM: Self = Self::literal(1);
    /// Bad address.
    pub const EFAULT: Self = Self::literal(14);
    /// Invalid argument: no such clock.
    pub const EINVAL: Self = Self::literal(22);
    /// Function not implemented: the kernel has no such system call, or a sandbox says so. This is the
    /// number of every architecture but mips, sparc, alpha and parisc.
    pub const ENOSYS: Self = Self::literal(38);
    /// The time does not fit: in the type that it is converted to, or after January 2038 where the
    /// kernel has only 32-bit calls. This is the number of every architecture but mips, sparc, alpha
    /// and parisc.
    pub const EOVERFLOW: Self = Self::literal(75);

    /// The error of this number; `None` unless it is in `1..=4095`.
    ///
    /// ```
    /// use vdso_time::Errno;
    ///
    /// assert_eq!(Errno::from_raw_os_error(22), Some(Errno::EINVAL));
    /// assert_eq!(Errno::from_raw_os_error(0), None);
    /// ```
    #[must_use]
    pub const fn from_raw_os_error(number: i32) -> Option<Self> {
        match number {
            1..=4095 => Some(Self::literal(number as u16)),
            _ => None,
        }
    }

    /// The number, as in errno(3) and [`std::io::Error::raw_os_error`].
    ///
    /// [`std::io::Error::raw_os_error`]: https://doc.rust-lang.org/std/io/struct.Error.html#method.raw_os_error
    ///
    /// ```
    /// assert_eq!(vdso_time::Errno::EPERM.raw_os_error(), 1);
    /// ```
    #[must_use]
    pub const fn raw_os_error(self) -> i32 {
        self.0.get() as i32
    }

    const fn literal(number: u16) -> Self {
        match NonZeroU16::new(number) {
            Some(number) => Self(number),
            None => panic!("an error number is not 0"),
        }
    }
}

/// The errors that a clock call, a sandbox or a clock's driver is known to answer. Up to 34 the numbers are
/// the same on every architecture; those above are include/uapi/asm-generic/errno.h's.
const NAMES: &[(u16, &str)] = &[
    (1, "EPERM"),
    (2, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (9, "EBADF"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (16, "EBUSY"),
    (19, "ENODEV"),
    (22, "EINVAL"),
    (25, "ENOTTY"),
    (34, "ERANGE"),
    #[cfg(not(vdso_time_libc_fallback))]
    (38, "ENOSYS"),
    #[cfg(not(vdso_time_libc_fallback))]
    (75, "EOVERFLOW"),
    #[cfg(not(vdso_time_libc_fallback))]
    (95, "EOPNOTSUPP"),
];

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0.get()) {
            Some((_, name)) => f.pad(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Errno {}

/// Needs the feature `std`.
#[cfg(feature = "std")]
impl From<Errno> for std::io::Error {
    /// Converts the number to the error of it.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::Errno;
    ///
    /// assert_eq!(std::io::Error::from(Errno::EPERM).kind(), std::io::ErrorKind::PermissionDenied);
    /// ```
    fn from(error: Errno) -> Self {
        Self::from_raw_os_error(error.raw_os_error())
    }
}

/// The other time is later: what `SystemTime::duration_since` returns then.
///
/// ```
/// use core::time::Duration;
/// use vdso_time::SystemTime;
///
/// let now = SystemTime::now();
/// let error = now.duration_since(now + Duration::from_secs(3)).unwrap_err();
/// assert_eq!(error.duration(), Duration::from_secs(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SystemTimeError(pub(crate) Duration);

impl SystemTimeError {
    /// How much later the other time is.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.0
    }
}

impl fmt::Display for SystemTimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the other time is {:?} later", self.0)
    }
}

impl core::error::Error for SystemTimeError {}
