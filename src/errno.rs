//! [`Errno`]: an error number of the kernel.

#![forbid(unsafe_code)]

use core::fmt;
use core::num::NonZeroU16;

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
///
/// The errors that clock functions are known to return have constants:
///
/// ```
/// # use vdso_time::{Errno, clock_gettime, ClockId};
/// match clock_gettime(ClockId::from_fd(99)) {
///     Err(Errno::EINVAL | Errno::EBADF | Errno::ENODEV) => println!("not the file of a clock"),
///     answer => println!("{answer:?}"),
/// }
/// assert_eq!(Errno::from_raw_os_error(16), Some(Errno::EBUSY));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(NonZeroU16);

/// Expands to the number of an error. Where this crate calls libc on Linux, the architecture can
/// have error numbers of its own, as mips, sparc, alpha and parisc do. So the macro uses libc's
/// constant there, and Linux's generic number everywhere else.
#[cfg(all(vdso_time_libc_fallback, vdso_time_linux))]
macro_rules! number {
    ($NAME:ident, $number:literal) => {
        libc::$NAME as u16
    };
}
#[cfg(not(all(vdso_time_libc_fallback, vdso_time_linux)))]
macro_rules! number {
    ($NAME:ident, $number:literal) => {
        $number
    };
}

/// Defines the constants, and the table of their names.
macro_rules! errors {
    ($($(#[$doc:meta])+ $NAME:ident = $number:literal;)+) => {
        impl Errno {
            $($(#[$doc])+ pub const $NAME: Self = Self::literal(number!($NAME, $number));)+
        }

        const NAMES: &[(Errno, &str)] = &[$((Errno::$NAME, stringify!($NAME))),+];
    };
}

// The errors that a clock call, a sandbox, a clock's driver or this crate is known to return. The
// numbers are from include/uapi/asm-generic/errno.h.
errors! {
    /// Operation not permitted: a sandbox denied the call.
    EPERM = 1;
    /// No such file or directory.
    ENOENT = 2;
    /// No such process.
    ESRCH = 3;
    /// Interrupted system call.
    EINTR = 4;
    /// Input/output error: the driver of a clock could not read its hardware.
    EIO = 5;
    /// No such device or address.
    ENXIO = 6;
    /// Bad file descriptor.
    EBADF = 9;
    /// Resource temporarily unavailable.
    EAGAIN = 11;
    /// Cannot allocate memory.
    ENOMEM = 12;
    /// Permission denied.
    EACCES = 13;
    /// Bad address.
    EFAULT = 14;
    /// Device or resource busy: it is too late to change a setting of the process.
    EBUSY = 16;
    /// No such device: the device of a clock was removed.
    ENODEV = 19;
    /// Invalid argument: no such clock.
    EINVAL = 22;
    /// Inappropriate ioctl for device.
    ENOTTY = 25;
    /// Numerical result out of range.
    ERANGE = 34;
    /// Function not implemented: the kernel has no such system call, or a sandbox answers as if the
    /// kernel did not have it.
    ENOSYS = 38;
    /// Value too large: the time does not fit in the target type, or it is now after January 2038
    /// and only 32-bit calls are available.
    EOVERFLOW = 75;
    /// Operation not supported: the driver of a clock cannot do this.
    EOPNOTSUPP = 95;
}

impl Errno {
    /// Creates the error with this number, or returns `None` if it is not in `1..=4095`.
    ///
    /// There are no error numbers outside of `1..=4095`: the kernel never returns one, and 0 means
    /// success. So this function can fail, unlike `io::Error::from_raw_os_error`.
    #[must_use]
    pub const fn from_raw_os_error(number: i32) -> Option<Self> {
        match number {
            1..=4095 => Some(Self::literal(number as u16)),
            _ => None,
        }
    }

    /// Returns the number. It is Linux's error number on every system.
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

impl fmt::Display for Errno {
    /// Writes the name of the error's constant, such as `EINVAL`. If this type has no constant for
    /// the error, writes its number instead, as in `errno 123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (error, name) in NAMES {
            if error == self {
                return f.pad(name);
            }
        }
        write!(f, "errno {}", self.0)
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
    /// Creates the I/O error with this number. On systems other than Linux, where the numbers have
    /// other meanings, the I/O error contains the `Errno` instead (`io::Error::get_ref`).
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

    /// On Linux, converts the number of an I/O error. On other systems, returns the `Errno` from
    /// which the I/O error was created.
    ///
    /// # Errors
    ///
    /// The I/O error itself, if it has no Linux error number.
    fn try_from(error: std::io::Error) -> Result<Self, std::io::Error> {
        if cfg!(any(target_os = "linux", target_os = "android")) {
            if let Some(number) = error.raw_os_error() {
                return Self::from_raw_os_error(number).ok_or(error);
            }
        }
        if let Some(source) = error.get_ref() {
            if let Some(errno) = source.downcast_ref() {
                return Ok(*errno);
            }
        }
        Err(error)
    }
}
