//! The types of the architectures' tables.

/// The description of an architecture: the symbols of its vDSO and its system calls.
#[derive(Debug)]
pub struct Abi {
    /// The architecture, spelled as in `target_arch`.
    pub name: &'static str,
    /// `e_machine` of its vDSO images.
    pub machine: u16,
    /// `EI_CLASS` of its vDSO images: 1 is `ELFCLASS32`, 2 is `ELFCLASS64`.
    pub class: u8,
    /// The version of the vDSO's symbols, except for the symbol in `kernel_entry`, which is listed
    /// with its own version.
    pub version: &'static str,
    /// The entry for `time()`. If the vDSO has no function for time(2), the vDSO's clock_gettime
    /// answers. The system calls in this entry do not include time(2), because not every
    /// architecture has it.
    pub time: Entry,
    pub gettimeofday: Entry,
    pub clock_gettime: Entry,
    pub clock_getres: Entry,
    pub getcpu: Entry,
    /// The name and the version of the symbol whose code enters the kernel. Only i386 has one.
    pub kernel_entry: Option<(&'static str, &'static str)>,
    /// The system calls that find and probe the image.
    pub discovery: Discovery,
}

/// The candidates that can answer one function: symbols of the vDSO, then system calls.
#[derive(Debug)]
pub struct Entry {
    /// Symbols of the vDSO, best first. The first one that the image has is used. No two of them
    /// have the same shape, so a shape identifies a candidate.
    pub candidates: &'static [Candidate],
    /// System calls, best first.
    pub syscalls: &'static [Syscall],
}

/// A symbol of the vDSO that can answer a function.
#[derive(Debug)]
pub struct Candidate {
    pub name: &'static str,
    pub shape: Shape,
    /// The state of the image in which the symbol must not be called, or `None` if it can be called
    /// in every state.
    pub unless: Option<Quirk>,
}

/// A system call that can answer a function.
#[derive(Debug)]
pub struct Syscall {
    /// The number in the architecture's unistd.h or syscall table.
    pub number: u32,
    /// The types of its arguments.
    pub shape: Shape,
}

/// The numbers of the system calls that find and probe the image. The image's address is in the
/// auxiliary vector, which prctl(2) returns for `PR_GET_AUXV`. If prctl(2) fails, the vector is
/// read from /proc/self/auxv with openat(2), read(2) and close(2). `rt_sigprocmask(2)` shows
/// whether a page of the image can be read: it returns `EFAULT` for a page that cannot.
#[derive(Debug)]
pub struct Discovery {
    pub prctl: u32,
    pub openat: u32,
    pub read: u32,
    pub close: u32,
    pub rt_sigprocmask: u32,
}

/// A C signature.
///
/// A symbol or system call that answers a function need not have the function's own shape:
/// `clock_gettime` for `CLOCK_REALTIME` can answer `gettimeofday()`, and `clock_gettime` for
/// `CLOCK_REALTIME_COARSE` can answer `time()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// `int (clockid_t, struct __kernel_timespec *)`: two 64-bit numbers.
    Timespec64,
    /// `int (clockid_t, struct old_timespec32 *)`: two 32-bit numbers.
    Timespec32,
    /// `int (struct __kernel_old_timeval *, struct timezone *)` with a 64-bit `long`.
    Timeval64,
    /// `int (struct __kernel_old_timeval *, struct timezone *)` with a 32-bit `long`.
    Timeval32,
    /// `long (long *)` with a 64-bit `long`.
    Time64,
    /// `int (unsigned *cpu, unsigned *node, void *unused)`.
    Getcpu,
}

impl Shape {
    /// Returns whether the seconds have 32 bits, and so overflow in January 2038.
    #[must_use]
    pub const fn is_time32(self) -> bool {
        matches!(self, Self::Timespec32 | Self::Timeval32)
    }
}

/// A state of an image in which some of its symbols must not be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// A function's name is blank (see `FallbackReason::BlankedNames`).
    BlankedNames,
    /// `PT_LOAD`'s `p_vaddr` is not 0 (see `FallbackReason::NonzeroLoadAddress`).
    NonzeroLoadAddress,
}

impl Abi {
    /// Returns the five functions with their names.
    #[must_use]
    pub const fn functions(&self) -> [(&'static str, &Entry); 5] {
        [
            ("time", &self.time),
            ("gettimeofday", &self.gettimeofday),
            ("clock_gettime", &self.clock_gettime),
            ("clock_getres", &self.clock_getres),
            ("getcpu", &self.getcpu),
        ]
    }
}

/// Creates the entry of a function that has no 32-bit variants.
pub(crate) const fn entry(candidates: &'static [Candidate], syscalls: &'static [Syscall]) -> Entry {
    Entry {
        candidates,
        syscalls,
    }
}

/// Creates the entry of a function of a 32-bit architecture. In the list of symbols and in the list
/// of system calls, the variant with 64-bit times comes first. The variants after it have seconds
/// that overflow in January 2038.
///
/// On Android, the 64-bit variants are left out. Android's seccomp filter kills a process that
/// makes a system call which Android's libc does not make, and before Android 11 the 32-bit libc
/// made none of the 64-bit calls (bionic, libc/seccomp). The 64-bit symbols of the vDSO are left
/// out as well, because they make a 64-bit call for a clock that they cannot read.
///
/// We tried to keep the 64-bit variants on Android and to use them last, so that times after
/// January 2038 would work. But then each of the four functions that read a clock had to go through
/// its lists twice: first the 32-bit variants, then the 64-bit ones. So we left these variants out,
/// and after January 2038 a 32-bit program on Android gets `EOVERFLOW` when it reads a wall clock.
/// Tests on Linux set the cfg `vdso_time_android_calls`, which leaves out the same variants as on
/// Android.
pub(crate) const fn entry32(
    candidates: &'static [Candidate],
    syscalls: &'static [Syscall],
) -> Entry {
    const HAS_TIME64: bool = !cfg!(any(target_os = "android", vdso_time_android_calls));
    match (candidates, syscalls) {
        ([_, candidates @ ..], [_, syscalls @ ..]) if !HAS_TIME64 => entry(candidates, syscalls),
        _ => entry(candidates, syscalls),
    }
}

impl Entry {
    /// Returns whether every candidate has this shape. If so, the compiler removes the code for the
    /// other shapes.
    pub(crate) const fn has_only(&self, shape: Shape) -> bool {
        let mut candidates = self.candidates;
        while let [candidate, rest @ ..] = candidates {
            if candidate.shape as u8 != shape as u8 {
                return false;
            }
            candidates = rest;
        }
        true
    }
}

/// Creates the candidate for a symbol that can be called in every state of the image.
pub(crate) const fn symbol(name: &'static str, shape: Shape) -> Candidate {
    Candidate {
        name,
        shape,
        unless: None,
    }
}

impl Candidate {
    /// Excludes the symbol in this state of the image.
    pub(crate) const fn unless(self, quirk: Quirk) -> Self {
        Self {
            unless: Some(quirk),
            ..self
        }
    }
}

/// Describes a system call.
pub(crate) const fn call(number: u32, shape: Shape) -> Syscall {
    Syscall { number, shape }
}
