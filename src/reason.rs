//! Why the vDSO does not answer.

use core::fmt;

use crate::elf::ParseError;

/// Why the vDSO does not answer a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FallbackReason {
    /// The first call found no usable vDSO.
    NoVdso(LocateError),
    /// The image is for another architecture.
    ForeignImage,
    /// The image has no symbol that can answer.
    NoSymbol,
    /// A function of the image has a blank name.
    ///
    /// The kernel found no usable timer at boot and blanked the names of the functions that read it
    /// (arch/arm/kernel/vdso.c, `vdso_nullpatch_one`). Kernels before 5.8 left out
    /// `__vdso_clock_gettime64`, which then returns garbage, so no such image is trusted.
    BlankedNames,
    /// The image has another `p_vaddr` than 0, so this function of it is not used.
    ///
    /// QEMU relocates its own image, whose getcpu is wrong. Others are prelinked: gVisor's, and
    /// those of x86_64 kernels before 3.14.
    NonzeroLoadAddress,
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoVdso(error) => return error.fmt(f),
            Self::ForeignImage => "the vDSO is for another architecture",
            Self::NoSymbol => "the vDSO has no function that can answer",
            Self::BlankedNames => "the kernel blanked the names of the vDSO's functions",
            Self::NonzeroLoadAddress => "this function is not used, because the vDSO's p_vaddr is not 0",
        })
    }
}

impl FallbackReason {
    pub(crate) const fn of(error: LocateError) -> Self {
        match error {
            LocateError::Malformed(ParseError::Class | ParseError::ByteOrder) => Self::ForeignImage,
            error => Self::NoVdso(error),
        }
    }
}

/// Why this process has no usable vDSO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LocateError {
    /// The auxiliary vector has no `AT_SYSINFO_EHDR`, or its value is 0. Without the feature
    /// `libc`, a sandbox may have denied to read the vector.
    Absent,
    /// `AT_SYSINFO_EHDR` points to unreadable memory: the vDSO was unmapped or moved.
    Unmapped,
    /// A sandbox denied the check that the memory is readable, and the address is not getauxval's.
    Unchecked,
    /// `AT_SYSINFO_EHDR` does not point to a well-formed image.
    Malformed(ParseError),
}

impl fmt::Display for LocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("no vDSO: AT_SYSINFO_EHDR is missing or 0, or a sandbox hides it"),
            Self::Unmapped => f.write_str("no vDSO: AT_SYSINFO_EHDR points to unreadable memory"),
            Self::Unchecked => f.write_str(
                "no vDSO: a sandbox denied the check of its address (call warm_up() before the sandbox)",
            ),
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
