//! The contract of an architecture's file: one [`Abi`] table, and one system-call function
//! (`unsafe fn syscall(number: u32, args: [usize; 5]) -> isize`) with the kernel's own convention:
//! a result in `-4095..=-1` is a negated error number. With the feature `counter`, also a module `counter`:
//! `const IS_READABLE: bool` (any program may read it), `fn ticks() -> u64`, `fn ticks_ordered() -> u64`,
//! `fn is_invariant() -> bool` and `fn stated_frequency() -> Option<u64>`.

/// `EI_CLASS` of a 32-bit image.
pub(crate) const ELFCLASS32: u8 = 1;
/// `EI_CLASS` of a 64-bit image.
pub(crate) const ELFCLASS64: u8 = 2;

/// Everything that differs between two architectures, as data.
///
/// ```
/// let abi = vdso_time::arch::ALL.iter().find(|abi| abi.name == "aarch64").unwrap();
/// assert_eq!(abi.clock_gettime.candidates[0].name, "__kernel_clock_gettime");
/// assert_eq!(abi.version, "LINUX_2.6.39");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Abi {
    /// The architecture, spelled as in `target_arch`.
    pub name: &'static str,
    /// `e_machine` of its vDSO images.
    pub machine: u16,
    /// `EI_CLASS` of its vDSO images: 1 is `ELFCLASS32`, 2 is `ELFCLASS64`.
    pub class: u8,
    /// The version of its symbols.
    pub version: &'static str,
    /// Where `time()` gets the seconds.
    pub time: Function,
    /// Where `gettimeofday()` gets the time.
    pub gettimeofday: Function,
    /// Where `clock_gettime()` gets the time.
    pub clock_gettime: Function,
    /// Where `clock_getres()` gets the resolution.
    pub clock_getres: Function,
    /// Where `getcpu()` gets the CPU and the node.
    pub getcpu: Function,
    /// The clock sources by which the kernel keeps the time if it does so by the counter that programs can read.
    pub clock_sources: &'static [&'static str],
    /// The system calls by which the image is found and probed.
    pub discovery: Discovery,
}

/// What can answer one function: symbols of the vDSO, then system calls.
///
/// ```
/// for abi in vdso_time::arch::ALL {
///     let names: Vec<_> = abi.time.candidates.iter().map(|candidate| candidate.name).collect();
///     println!("time() on {}: {names:?}, then system call {}", abi.name, abi.time.syscalls[0].number);
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Function {
    /// Symbols of the vDSO, best first. The first one that the image has wins.
    pub candidates: &'static [Candidate],
    /// System calls, best first. The seconds of these have 64 bits.
    pub syscalls: &'static [Syscall],
    /// System calls whose seconds end in January 2038.
    pub time32_syscalls: &'static [Syscall],
}

/// A symbol of the vDSO that can answer a function.
#[derive(Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The symbol's name.
    pub name: &'static str,
    /// The C signature behind the name.
    pub shape: Shape,
    /// The state of the image in which the symbol must not be called.
    pub unless: Option<Quirk>,
}

/// A system call that can answer a function.
#[derive(Debug)]
#[non_exhaustive]
pub struct Syscall {
    /// The system call's number on this architecture.
    pub number: u32,
    /// The C signature behind the number.
    pub shape: Shape,
}

/// A row of a table: a system call.
pub(crate) const fn call(number: u32, shape: Shape) -> Syscall {
    Syscall { number, shape }
}

/// A row of a table: a symbol that can be called in every state of the image.
pub(crate) const fn symbol(name: &'static str, shape: Shape) -> Candidate {
    Candidate { name, shape, unless: None }
}

impl Candidate {
    /// The same symbol, which must not be called in this state of the image.
    pub(crate) const fn unless(self, quirk: Quirk) -> Self {
        Self { unless: Some(quirk), ..self }
    }
}

/// Whether the 32-bit system calls are tried first.
///
/// Android's seccomp filter kills a process for a system call that Android's libc does not use. On
/// 32-bit Android before 11 these are all the 64-bit ones (bionic, libc/seccomp). There the 64-bit
/// calls come second, for a time after January 2038. The cfg makes the same order on Linux, for tests.
pub const TIME32_FIRST: bool = cfg!(any(target_os = "android", vdso_time_android_order));

/// A C signature: which call it is, and how wide its numbers are.
///
/// A function may be answered by a call of another shape: `gettimeofday()` by a `Timespec64`, asked
/// for `CLOCK_REALTIME`; `time()` by any of them, a clock being `CLOCK_REALTIME_COARSE` then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// `int (clockid_t, struct __kernel_timespec *)`: two 64-bit numbers.
    Timespec64,
    /// `int (clockid_t, struct old_timespec32 *)`: two 32-bit numbers.
    Timespec32,
    /// `int (struct __kernel_old_timeval *, struct timezone *)` where `long` is 64 bits.
    Timeval64,
    /// `int (struct __kernel_old_timeval *, struct timezone *)` where `long` is 32 bits.
    Timeval32,
    /// `long (long *)` where `long` is 64 bits.
    Time64,
    /// `long (long *)` where `long` is 32 bits.
    Time32,
    /// `int (unsigned *cpu, unsigned *node, void *unused)`.
    Getcpu,
}

impl Shape {
    /// Whether the seconds end in January 2038.
    ///
    /// ```
    /// use vdso_time::arch::Shape;
    ///
    /// assert!(Shape::Timespec32.is_time32());
    /// assert!(!Shape::Timespec64.is_time32());
    /// ```
    #[must_use]
    pub const fn is_time32(self) -> bool {
        matches!(self, Self::Timespec32 | Self::Timeval32 | Self::Time32)
    }
}

/// A state of an image that makes some of its symbols unfit to be called.
///
/// ```
/// use vdso_time::arch::{ALL, Quirk};
///
/// let arm = ALL.iter().find(|abi| abi.name == "arm").unwrap();
/// assert_eq!(arm.clock_gettime.candidates[0].unless, Some(Quirk::BlankedNames));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quirk {
    /// A function's name is blank: the kernel found no usable timer at boot and took the names of the
    /// functions that read it (arch/arm/kernel/vdso.c, `vdso_nullpatch_one`), but kernels before 5.8
    /// forgot `__vdso_clock_gettime64`, which then returns garbage.
    BlankedNames,
    /// `PT_LOAD`'s `p_vaddr` is not 0: the loader relocated the image, as QEMU's does with its own.
    Relocated,
}

/// The numbers of the system calls by which the image is found and probed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Discovery {
    /// `prctl(2)`, for `PR_GET_AUXV` and, by the counter clock, `PR_GET_TSC`.
    pub prctl: u32,
    /// `openat(2)`, for `/proc/self/auxv` and, by the counter clock, the name of the clock source.
    pub openat: u32,
    /// `read(2)`.
    pub read: u32,
    /// `close(2)`.
    pub close: u32,
    /// `rt_sigprocmask(2)`, which answers `EFAULT` for a page that cannot be read.
    pub rt_sigprocmask: u32,
}

impl Abi {
    /// The five functions, with their names.
    #[must_use]
    pub const fn functions(&self) -> [(&'static str, &Function); 5] {
        [
            ("time", &self.time),
            ("gettimeofday", &self.gettimeofday),
            ("clock_gettime", &self.clock_gettime),
            ("clock_getres", &self.clock_getres),
            ("getcpu", &self.getcpu),
        ]
    }

    /// Whether any symbol must not be called in this state of the image.
    pub(crate) const fn has_quirk(&self, quirk: Quirk) -> bool {
        let mut functions: &[(&str, &Function)] = &self.functions();
        while let [(_, function), others @ ..] = functions {
            let mut candidates = function.candidates;
            while let [candidate, rest @ ..] = candidates {
                if matches!(candidate.unless, Some(unless) if unless as u8 == quirk as u8) {
                    return true;
                }
                candidates = rest;
            }
            functions = others;
        }
        false
    }
}

impl Function {
    /// Whether a candidate has this shape. The compiler leaves the code for other shapes out.
    pub(crate) const fn has(&self, shape: Shape) -> bool {
        let mut candidates = self.candidates;
        while let [candidate, rest @ ..] = candidates {
            if candidate.shape as u8 == shape as u8 {
                return true;
            }
            candidates = rest;
        }
        false
    }

    /// The system calls in the order in which they are tried.
    pub fn syscalls_in_order(&self, time32_first: bool) -> impl Iterator<Item = &'static Syscall> {
        let (first, second) = if time32_first {
            (self.time32_syscalls, self.syscalls)
        } else {
            (self.syscalls, self.time32_syscalls)
        };
        first.iter().chain(second)
    }
}
