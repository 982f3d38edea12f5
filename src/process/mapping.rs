//! From an address to bytes: the only place where a mapping becomes a slice.

#![allow(clippy::inline_always, reason = "as in the parser")]

use core::slice;

use crate::elf::{Format, ParseError, ParsedImage, ProgramHeaders};

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
    let headers = ProgramHeaders::<F>::read(head)?;
    let image_end = base.addr().checked_add(headers.extent()).ok_or(ParseError::Truncated)?;
    let mut end = if is_whole { image_end } else { image_end.min(second) };
    loop {
        for page in (second..end).step_by(PAGE) {
            check(page)?;
        }
        // SAFETY: `check` passed every page up to `end`, where the slice ends, at most 1 MiB on
        // (`extent`). So it is readable and does not change, as the caller promises.
        let known = unsafe { slice::from_raw_parts(base, end.wrapping_sub(base.addr())) };
        let image = ParsedImage::new(&headers, known);
        if image.is_ok() || end == image_end {
            return image.map_err(E::from);
        }
        end = image_end;
    }
}

/// Returns the address of the page that contains an address.
pub(super) const fn page_of(address: usize) -> usize {
    address & !(PAGE - 1)
}
