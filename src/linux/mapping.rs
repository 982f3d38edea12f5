//! From an address to bytes: the only place where a mapping becomes a slice.

#![allow(unsafe_code, reason = "a mapping becomes a slice here")]

use core::slice;

use crate::elf::{Format, ParseError, ParsedImage, ProgramHeaders};

/// The smallest page of any architecture. A larger one holds whole ones of this size, so what is true of each of
/// these is true of it.
const PAGE: usize = 4096;

/// Parses the image at `base`.
///
/// Reads only the first page until the program headers say how far the image goes, and no page before
/// `check` has passed it. `check` is called with the address of 8 bytes, in one page or in two.
///
/// # Safety
/// Every page that passes the check must be readable, and what the image has there must not change
/// during `'a`.
pub(crate) unsafe fn image<'a, F: Format, E: From<ParseError>>(
    base: *const u8,
    check: impl Fn(usize) -> Result<(), E>,
) -> Result<ParsedImage<'a, F>, E> {
    let first = base.addr() & !(PAGE - 1);
    let second = first.wrapping_add(PAGE);
    // Most images have two pages: one check of 8 bytes around their border is enough for both.
    let mut unchecked = if check(second.wrapping_sub(4)).is_ok() {
        second.wrapping_add(PAGE)
    } else {
        check(first)?;
        second
    };
    // SAFETY: the first page passed the check, and the slice ends with it.
    let page = unsafe { bytes(base, second.wrapping_sub(base.addr())) };
    let headers = ProgramHeaders::read(page)?;
    let end = base.addr().checked_add(headers.extent()).ok_or(ParseError::Truncated)?;
    while unchecked < end {
        check(unchecked)?;
        unchecked = unchecked.saturating_add(PAGE);
    }
    // SAFETY: every page up to `end` passed the check.
    let image = unsafe { bytes(base, headers.extent()) };
    Ok(ParsedImage::parse(image, headers)?)
}

/// The bytes from `base` on.
///
/// # Safety
/// They must be readable, and must not change during `'a`.
unsafe fn bytes<'a>(base: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the caller promises that the bytes are readable and do not change.
    unsafe { slice::from_raw_parts(base, len) }
}
