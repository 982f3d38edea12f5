//! The parser of ELF images: bytes in, symbols out.
//!
//! It reads images of any machine and class, and of this process's byte order. It trusts no byte
//! and has no unsafe code. It reads what a loader reads: the program headers, `DT_SYMTAB`,
//! `DT_STRTAB` and, if present, the hash and version tables. It does not read section headers,
//! because they need not be in memory.
//!
//! The work is bounded for any bytes: an image has at most 1 MiB and 16 version definitions, at
//! most 1,024 bytes of a name are read, and each function passes the image once.

//!
//! A program parses an image once, in a first call, and executes most of this code once. So such a
//! call costs what it costs to fetch code and to find out where it jumps. The functions of a first
//! call are `#[inline]`, so that the compiler can put them into one unit with their caller: without
//! it, a first call took 1.07 of rustix's instead of 1.00, in a run in which `inline(always)` at
//! all of them, as they once had it, took 0.99. And they call nothing of libc or of a distant part
//! of core, such as memcmp or memchr: in a forked child each new page costs a page fault, and with
//! two of these calls a child took 1.64 of rustix's time instead of 1.19.

#![forbid(unsafe_code)]
// The parser exists to make these impossible.
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
pub(crate) use layout::ELFDATA;
pub use symbol::Symbol;
