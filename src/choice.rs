//! Decides which symbol of an image answers each function, or why none does.

#![forbid(unsafe_code)]

use core::fmt;

use crate::arch::{Abi, Candidate, Entry, Quirk};
use crate::elf::{ELFDATA, Image, ParseError};

/// The symbol that answers a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) candidate: &'static Candidate,
    /// The address of the code. On arm, bit 0 is set for Thumb code.
    pub(crate) address: usize,
}

/// The symbol that answers a function, or why none does.
pub(crate) type Outcome = Result<Choice, FallbackReason>;

/// Returns whether a program for this architecture can call the functions of an image. The image
/// must have the architecture's machine and class, and function pointers must be addresses of code.
///
/// On big-endian powerpc64, a function pointer of a program with the ABI ELFv1, such as glibc's, is
/// the address of a descriptor. The vDSO has no descriptors, so the crate calls libc, which knows
/// how to call the vDSO. There are also big-endian programs with the ABI ELFv2, such as musl's,
/// whose function pointers are addresses of code. The crate does not distinguish the two ABIs, and
/// calls libc in both. `build.rs` makes the same decision for the architecture that the crate is
/// compiled for.
pub(crate) fn can_call(abi: &Abi, image: &Image<'_>) -> bool {
    const EM_PPC64: u16 = 21;
    const ELFDATA2MSB: u8 = 2;
    let has_descriptors = abi.machine == EM_PPC64 && ELFDATA == ELFDATA2MSB;
    image.machine() == abi.machine && image.class() == abi.class && !has_descriptors
}

/// Finds the best candidate that an image has for each of [`Abi::functions`]. The image's first
/// byte is at `base`.
#[inline]
pub(crate) fn decide(abi: &'static Abi, image: &Image<'_>, base: usize) -> [Outcome; 5] {
    let outcome = |entry| choose(entry, abi.version, image, base);
    [
        outcome(&abi.time),
        outcome(&abi.gettimeofday),
        outcome(&abi.clock_gettime),
        outcome(&abi.clock_getres),
        outcome(&abi.getcpu),
    ]
}

/// Finds the first candidate that an image has and that may be called. If there is none, returns
/// why the last of the excluded candidates was excluded, or `NoSymbol` if none was.
#[inline]
fn choose(entry: &'static Entry, version: &str, image: &Image<'_>, base: usize) -> Outcome {
    let mut reason = FallbackReason::NoSymbol;
    for candidate in entry.candidates {
        // A blank name in the image means that the kernel found no usable timer. It excludes every
        // candidate that reads the timer, because some kernels did not blank the names of all of
        // these functions (see `FallbackReason::BlankedNames`).
        if candidate.unless == Some(Quirk::BlankedNames) && image.has_blanked_names() {
            reason = FallbackReason::BlankedNames;
            continue;
        }
        let Some(value) = image.value_of(candidate.name, Some(version)) else {
            continue;
        };
        if candidate.unless == Some(Quirk::NonzeroLoadAddress) && image.load_address() != 0 {
            reason = FallbackReason::NonzeroLoadAddress;
            continue;
        }
        let address = image.address(value, base);
        return Ok(Choice { candidate, address });
    }
    Err(reason)
}

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
    /// (arch/arm/kernel/vdso.c, `vdso_nullpatch_one`). Kernels before 5.8 did not blank
    /// `__vdso_clock_gettime64`, which then returns garbage. So none of these functions is called
    /// in an image with a blank name.
    BlankedNames,
    /// The image has a `p_vaddr` other than 0, so the image's getcpu is not used. Only getcpu on
    /// `x86` and `x86_64` can have this reason.
    ///
    /// User-mode QEMU has an image of its own, whose getcpu does not work. QEMU relocates this
    /// image, so its `p_vaddr` is not 0. Prelinked images, such as the images of gVisor, of
    /// user-mode Linux, and of x86_64 kernels before 3.14, also have a `p_vaddr` other than 0, so
    /// their getcpu is not used either.
    NonzeroLoadAddress,
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoVdso(error) => return error.fmt(f),
            Self::ForeignImage => "the vDSO is for another architecture",
            Self::NoSymbol => "the vDSO has no function that can answer",
            Self::BlankedNames => "the kernel blanked the names of the vDSO's functions",
            Self::NonzeroLoadAddress => {
                "this function is not used, because the vDSO's p_vaddr is not 0"
            }
        })
    }
}

impl FallbackReason {
    pub(crate) const fn of(error: LocateError) -> Self {
        match error {
            LocateError::Malformed(ParseError::ByteOrder) => Self::ForeignImage,
            error => Self::NoVdso(error),
        }
    }
}

/// Why this process has no usable vDSO.
// `LocateError` is here and not in `process`, because it is public on every target, and `process`
// exists only on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LocateError {
    /// The auxiliary vector has no `AT_SYSINFO_EHDR`, or its value is 0. Without the feature
    /// `libc`, it is also possible that the vector could not be read, because a sandbox denied the
    /// system calls or, before Linux 6.4, because /proc is not mounted.
    Absent,
    /// `AT_SYSINFO_EHDR` points to unreadable memory: the vDSO was unmapped or moved.
    Unmapped,
    /// A sandbox denied the check that the memory at `AT_SYSINFO_EHDR` is readable. The crate uses
    /// an address without this check only if getauxval(3) returned the address. In this process,
    /// the crate read the address from the kernel, or the program set it.
    Unchecked,
    /// `AT_SYSINFO_EHDR` does not point to a well-formed image.
    Malformed(ParseError),
}

impl fmt::Display for LocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str(
                "no vDSO: AT_SYSINFO_EHDR is missing or 0 or, without libc, a sandbox hides it or /proc is not mounted",
            ),
            Self::Unmapped => f.write_str("no vDSO: AT_SYSINFO_EHDR points to unreadable memory"),
            Self::Unchecked => f.write_str(
                "no vDSO: a sandbox denied the check of its address (call warm_up() before entering it)",
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
