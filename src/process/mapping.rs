//! From an address to bytes: the only place where a mapping becomes a slice.
//!
//! # The luxury of the first call
//!
//! A short-lived program makes one first call and few others, so three things make it shorter than
//! a plain parser would. Each was tried without:
//!
//! - **A part of the image.** [`image`] parses what the first page has, and the whole image only if
//!   a table goes on. The tables of most images are there, and each further page takes a system
//!   call to probe it and a page fault to read it. With the whole image the first call of a forked
//!   child took 1.0 to 1.3 us more, of 9 to 11. For this alone [`ParsedImage::new`] accepts a part.
//! - **Reads ahead.** One table has the address of the next, so the parser's reads wait for each
//!   other. [`fetch`] reads a byte of each line of the tables first, and these reads overlap. With
//!   cold caches that finds a function in 580 ns instead of 1,260; with warm ones it costs 2 ns.
//! - **One piece of code.** A CPU prefetches code that lies together, and a call of another
//!   function, however short, made the first call longer. `parse` spent most of its time copying
//!   its results; inlined, it takes half as long. So `inline(always)` stands at all that the
//!   process's own image needs, from here to the symbols (`tests/codegen/one_piece.rs`).

#![allow(clippy::inline_always, reason = "the first call is one piece of code")]

use core::hint::black_box;
use core::slice;

use crate::elf::{Bytes, Format, ParseError, ParsedImage, ProgramHeaders};

/// The smallest page size of any architecture. Larger pages consist of pieces of this size.
pub(super) const PAGE: usize = 4096;

/// Parses the image at `base`.
///
/// Reads only the first page, unless a table is not in it or `is_whole` is set. Calls `check` with
/// the address of every page before reading it.
///
/// # Safety
///
/// Every page that passes the check must be readable, and the image in it must not change during
/// `'a`.
#[inline(always)]
pub(crate) unsafe fn image<'a, F: Format, E: From<ParseError>>(
    base: *const u8,
    is_whole: bool,
    check: impl Fn(usize) -> Result<(), E>,
) -> Result<ParsedImage<'a, F>, E> {
    let first = page_of(base.addr());
    check(first)?;
    let second = first.wrapping_add(PAGE);
    // SAFETY: `check` passed the first page, and the slice ends with it. So it is readable and does
    // not change, as the caller promises.
    let head = unsafe { slice::from_raw_parts(base, second.wrapping_sub(base.addr())) };
    fetch(head);
    let head = Bytes::of_image(head)?;
    if const { F::IS_KNOWN } || head.is_own() {
        // SAFETY: the caller promises it, and `head` ends with the first page, which passed.
        unsafe {
            rest_of(
                Bytes {
                    format: F::OWN,
                    ..head
                },
                base,
                is_whole,
                check,
            )
        }
    } else {
        // SAFETY: the same.
        unsafe { rest_of(head, base, is_whole, check) }
    }
}

/// Parses the image at `base`, whose first page is `head`.
///
/// # Safety
///
/// As of [`image`].
#[inline(always)]
unsafe fn rest_of<F: Format, E: From<ParseError>>(
    head: Bytes<'_, F>,
    base: *const u8,
    is_whole: bool,
    check: impl Fn(usize) -> Result<(), E>,
) -> Result<ParsedImage<'_, F>, E> {
    let second = base.addr().wrapping_add(head.raw.len());
    let headers = ProgramHeaders::read(head)?;
    let image_end = base
        .addr()
        .checked_add(headers.load.end())
        .ok_or(ParseError::Truncated)?;
    let mut end = if is_whole {
        image_end
    } else {
        image_end.min(second)
    };
    loop {
        for page in (second..end).step_by(PAGE) {
            check(page)?;
        }
        // SAFETY: `check` passed every page up to `end`, where the slice ends, at most 1 MiB on
        // (`ProgramHeaders`). So it is readable and does not change, as the caller promises.
        let known = unsafe { slice::from_raw_parts(base, end.wrapping_sub(base.addr())) };
        let image = ParsedImage::new(&headers, known);
        if image.is_ok() || end == image_end {
            return image.map_err(E::from);
        }
        end = image_end;
    }
}

/// Reads a byte of each cache line in which the tables of the kernel's images lie.
#[inline(always)]
fn fetch(head: &[u8]) {
    /// The size of a cache line on most CPUs.
    const LINE: usize = 64;
    const LINES: usize = 24;
    let Some(tables) = head.first_chunk::<{ LINES * LINE }>() else {
        return;
    };
    black_box(tables.iter().step_by(LINE).fold(0, |all, byte| all | byte));
}

/// Returns the address of the page that contains an address.
pub(super) const fn page_of(address: usize) -> usize {
    address & !(PAGE - 1)
}
