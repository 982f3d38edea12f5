//! The running process: its auxiliary vector, and its vDSO as an image.
//!
//! A first call of any function of this crate finds the vDSO in these steps. The numbers are from
//! an x86_64 process on Linux 6.18.
//!
//! 1. `auxv`: `AT_SYSINFO_EHDR` of the auxiliary vector is 0x7ffff7fc5000, where the image begins.
//! 2. `kernel::probe` asks the kernel whether the 4,096 bytes from there are readable, because
//!    another part of the program may have unmapped the vDSO.
//! 3. `mapping` makes a slice of them, and [`Image`](crate::elf::Image) parses it: the program
//!    headers say that the image has 0x1522 bytes and where its dynamic section is. That section
//!    says where the symbols, the strings and the versions are. All of them lie in the first page,
//!    so the second one, which has only code, is neither probed nor read.
//! 4. `choice::decide` looks each function up. The symbol `__vdso_clock_gettime` of the version
//!    `LINUX_2.6` has the value 0xaf0, and the image is linked at 0, so the function is at
//!    0x7ffff7fc5af0.
//!
//! Then `sys::vdso` stores the addresses in its slots, from which later calls take them.
//!
//! Each step can fail. If a step fails, the functions that depend on it make system calls for the
//! life of the process. The first call does not return an error because of such a failure.
//!
//! | step | failure | reason |
//! |---|---|---|
//! | 1 | the entry is missing or 0 | `Absent` |
//! | 2 | the kernel answers `EFAULT` | `Unmapped` |
//! | 2 | a sandbox denies the check, and the address is not from getauxval | `Unchecked` |
//! | 3 | the image is malformed | `Malformed` |
//! | 3 | the image has another byte order, machine or class | `ForeignImage` |
//! | 4 | a symbol is missing | `NoSymbol`, for this function only |
//! | 4 | a symbol must not be called | its `Quirk`, for this function only |
//!
//! A function of the vDSO that was found can still fail, in the first call or in a later one. If it
//! returns `EINVAL` for the clock that the program asked for, the kernel has no such clock, and the
//! program gets this error. After any other error, and if 32-bit seconds overflow,
//! `sys::vdso::calls` makes the system calls that the architecture's table lists, in that order.

#![allow(unsafe_code, reason = "mappings and system calls")]

pub(crate) mod auxv;
mod functions;
pub(crate) mod kernel;
mod mapping;
pub mod vdso;
