//! [`Errno`]: an error number of the kernel.

use core::fmt;
use core::num::NonZeroU16;

/// The numbers of include/uapi/asm-generic/errno.h. mips, sparc, alpha and parisc have others.
#[cfg(not(all(vdso_time_libc_fallback, vdso_time_linux)))]
mod number {
    pub(super) const ENOSYS: i32 = 38;
    pub(super) const EOVERFLOW: i32 = 75;
    pub(super) const EOPNOTSUPP: i32 = 95;
}
#[cfg(all(vdso_time_libc_fallback, vdso_time_linux))]
use libc as number;

/// An error number of the kernel, `1..=4095` (errno(3)).
///
/// # Examples
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
    /// Device or resource busy: it is too late to change what is in use.
    pub const EBUSY: Self = Self::literal(16);
    /// Invalid argument: no such clock.
    pub const EINVAL: Self = Self::literal(22);
    /// Function not implemented: the kernel has no such system call, or a sandbox says so.
    pub const ENOSYS: Self = Self::literal(number::ENOSYS as u16);
    /// Value too large: the time does not fit in the target type, or it is after January 2038 and
    /// only 32-bit calls answer.
    pub const EOVERFLOW: Self = Self::literal(number::EOVERFLOW as u16);

    /// Creates the error with this number, or returns `None` if it is not in `1..=4095`.
    #[must_use]
    pub const fn from_raw_os_error(number: i32) -> Option<Self> {
        match number {
            1..=4095 => Some(Self::literal(number as u16)),
            _ => None,
        }
    }

    /// Returns the number, which is Linux's on every system.
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

/// The errors that a clock call, a sandbox or a clock's driver is known to return.
///
/// Every architecture has the same numbers up to 34, except for EAGAIN on alpha.
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
    (number::ENOSYS as u16, "ENOSYS"),
    (number::EOVERFLOW as u16, "EOVERFLOW"),
    (number::EOPNOTSUPP as u16, "EOPNOTSUPP"),
];

impl fmt::Display for Errno {
    /// Writes the name, or `errno 123` for an error without a name here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0.get()) {
            Some((_, name)) => f.pad(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    /// Writes what `Display` writes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Errno {}

/// Requires the feature `std`.
#[cfg(feature = "std")]
impl From<Errno> for std::io::Error {
    /// Creates the I/O error with this number. On another system than Linux, where numbers have
    /// other meanings, it has the error as its source.
    fn from(error: Errno) -> Self {
        if cfg!(any(target_os = "linux", target_os = "android")) {
            return Self::from_raw_os_error(error.raw_os_error());
        }
        let kind = match error {
            Errno::EINVAL => std::io::ErrorKind::InvalidInput,
            Errno::ENOSYS => std::io::ErrorKind::Unsupported,
            _ => std::io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Requires the feature `std`.
#[cfg(feature = "std")]
impl TryFrom<std::io::Error> for Errno {
    type Error = std::io::Error;

    /// Returns the number of an I/O error on Linux, and the source of one that an `Errno` made on
    /// another system.
    ///
    /// # Errors
    ///
    /// The error itself, if it has no number of Linux.
    fn try_from(error: std::io::Error) -> Result<Self, std::io::Error> {
        let number = error
            .raw_os_error()
            .filter(|_| cfg!(any(target_os = "linux", target_os = "android")));
        let source = || error.get_ref()?.downcast_ref().copied();
        number
            .and_then(Self::from_raw_os_error)
            .or_else(source)
            .ok_or(error)
    }
}
