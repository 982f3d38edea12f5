//! From an address to bytes: the only place where a mapping becomes a slice.

#![allow(unsafe_code, reason = "a mapping becomes a slice here")]

use core::slice;

use crate::elf::{Format, ParseError, Walk};

/// The smallest page of any architecture. A larger one holds whole ones of this size, so what is true of each of
/// these is true of it.
const PAGE: usize = 4096;

/// Reads the image at `base`: nothing but the rest of its first page until the headers have said how far it goes,
/// and no page of which `check`, called with an address in it, has not said that it can be read.
///
/// # Safety
/// Every page that passes the check must be readable, and what the image has there must not change, for `'a`.
pub(crate) unsafe fn walk<'a, F: Format, E: From<ParseError>>(
    base: *const u8,
    check: impl Fn(usize) -> Result<(), E>,
) -> Result<Walk<'a, F>, E> {
    let first = base.addr() & !(PAGE - 1);
    check(first)?;
    // SAFETY: the page passed the check, and the slice ends with it.
    let head = unsafe { bytes(base, first.wrapping_add(PAGE).wrapping_sub(base.addr())) };
    let extent = Walk::<F>::extent(head)?;
    let end = base.addr().checked_add(extent).ok_or(ParseError::Truncated)?;
    for page in (first..end).step_by(PAGE).skip(1) {
        check(page)?;
    }
    // SAFETY: every page up to `end` passed the check.
    let whole = unsafe { bytes(base, extent) };
    Ok(Walk::parse(whole)?)
}

/// The bytes from `base` on.
///
/// # Safety
/// They must be readable, and must not change, for `'a`.
pub(crate) unsafe fn bytes<'a>(base: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the caller's duty.
    unsafe { slice::from_raw_parts(base, len) }
}
