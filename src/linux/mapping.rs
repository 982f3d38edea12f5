//! From an address to bytes: the only place where a mapping becomes a slice.

#![allow(unsafe_code, reason = "a mapping becomes a slice here")]
#![allow(clippy::inline_always, reason = "as in the parser")]

use core::slice;

use crate::elf::{Format, Image, ParseError, ProgramHeaders};

/// The smallest page size of any architecture. Larger pages consist of pieces of this size.
const PAGE: usize = 4096;

/// Parses the image at `base`.
///
/// Reads only the first page until the program headers give the extent. Calls `check` for every
/// page before reading it, with an address in it. The 8 bytes from that address may extend into the
/// next page, which is then checked too.
///
/// # Safety
///
/// Every page that passes the check must be readable, and the image in it must not change during
/// `'a`.
#[inline(always)]
pub(crate) unsafe fn image<'a, F: Format, E: From<ParseError>>(
    base: *const u8,
    check: impl Fn(usize) -> Result<(), E>,
) -> Result<Image<'a>, E> {
    let first = base.addr() & !(PAGE - 1);
    let second = first.wrapping_add(PAGE);
    // Most images have two pages. One check of 8 bytes across their border covers both.
    let mut unchecked = if check(second.wrapping_sub(4)).is_ok() {
        second.wrapping_add(PAGE)
    } else {
        check(first)?;
        second
    };
    // SAFETY: `check` passed the first page, and the slice ends with that page.
    let page = unsafe { bytes(base, second.wrapping_sub(base.addr())) };
    let headers = ProgramHeaders::<F>::read(page)?;
    let end = base.addr().checked_add(headers.extent()).ok_or(ParseError::Truncated)?;
    while unchecked < end {
        check(unchecked)?;
        unchecked = unchecked.saturating_add(PAGE);
    }
    // SAFETY: `check` passed every page up to `end`, which is where the slice ends.
    let image = unsafe { bytes(base, headers.extent()) };
    headers.image(image).map_err(E::from)
}

/// Returns the `len` bytes at `base`.
///
/// # Safety
///
/// They must be readable, and must not change during `'a`.
unsafe fn bytes<'a>(base: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the caller promises that the bytes are readable and do not change.
    unsafe { slice::from_raw_parts(base, len) }
}
