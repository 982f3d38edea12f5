//! The parser of ELF images: bytes in, symbols out.
//!
//! `process::mapping` parses the vDSO of this process with `Image::parse_beginning`, as part of a
//! first call: the first use of a clock function in a process. [`Image::parse`] is for whole
//! images, such as files. The documentation of `process` follows one first call from end to end.
//!
//! The parser reads images of any machine and class, but only of this process's byte order. It
//! trusts no byte and has no unsafe code. It reads what a loader reads: the program headers,
//! `DT_SYMTAB`, `DT_STRTAB` and, if present, the hash and version tables. It does not read section
//! headers, because they need not be in memory.
//!
//! The amount of work is bounded, whatever the bytes are: an image has at most 1 MiB and 16 version
//! definitions, at most 1,024 bytes of a name are read, and each function makes one pass over the
//! image.
//!
//! # Why some functions are `#[inline]`
//!
//! A program parses its image once, in a first call, and executes most of this code once. So most
//! of the cost of such a call is the time that the CPU takes to fetch the code and to resolve its
//! branches. The functions of a first call are `#[inline]`, so that the compiler can put them into
//! one codegen unit with their caller. Without these hints, a first call took 1.07 times as long as
//! rustix's; with them, it takes the same time. An earlier parser, which `inline(always)` put into
//! one function, was not faster than the present one when we measured the two in one run.
//!
//! The functions of a first call do not call memcmp or memchr, for two reasons. First, a C program
//! without libc has neither function. Second, a forked child starts without page table entries for
//! libc's code, so a call of memcmp or memchr costs a page fault there. When the parser called
//! memcmp and memchr, a first call in a child took 1.64 times as long as rustix's; without them, it
//! took 1.19 times as long.
//!
//! The optimised code must not contain a panic (tests/codegen/no_panic.rs checks this), because a
//! first call can come from a C program or from a signal handler, where a panic ends the process.

#![forbid(unsafe_code)]
// The parser must not panic or overflow, whatever the bytes are.
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::expect_used
)]
#![deny(clippy::panic)]

mod error;
mod hash;
mod headers;
mod image;
mod layout;
mod symbol;
mod version;

pub use error::ParseError;
pub use image::Image;
pub(crate) use layout::{ELFCLASS32, ELFCLASS64, ELFDATA};
pub use symbol::Symbol;
