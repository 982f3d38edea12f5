//! Parses the image at an address. Only this module makes a slice of mapped memory.

use core::slice;

use crate::elf::{Image, ParseError};

/// The smallest page size of any architecture. A larger page is probed in pieces of this size.
const PAGE: usize = 4096;

/// Parses the image at `base`. Calls `probe` with the address of each page before it reads the
/// page.
///
/// The first page is tried alone, because the kernel's images have their headers and all tables
/// there, and only code after it ([`Image::parse_beginning`]). Each further page costs a system
/// call for the probe and a page fault for the read, together 1.3 to 2.2 us (docs/DESIGN.md). A
/// short-lived program makes only a few calls after its first. The time that the vDSO saves in so
/// few calls could never make up for this cost.
///
/// We tried two other things here, which cost more than they saved. Reading one byte of each cache
/// line of the tables in advance, so that the cache misses overlap, helped only if all caches had
/// been flushed by hand, and otherwise cost 0.1 us. Probing the page of each function as well cost
/// 0.3 us.
///
/// # Safety
///
/// These bytes must be readable and initialised, must belong to one allocation that can be read
/// through `base`, and must not change during `'a`:
///
/// - from `base` to the end of its page, if `probe` accepts this page;
/// - the first [`Image::extent`] bytes, if the first page begins an image and `probe` accepts the
///   pages of these bytes.
#[inline]
pub(super) unsafe fn image<'a, E: From<ParseError>>(
    base: *const u8,
    probe: impl Fn(usize) -> Result<(), E>,
) -> Result<Image<'a>, E> {
    // The address that the kernel passes is the start of a page. If a caller passes an address in
    // the middle of a page, the slice still ends with the page that was probed.
    let in_first_page = PAGE - base.addr() % PAGE;
    probe(base.addr() & !(PAGE - 1))?;
    // SAFETY: `probe` accepted the first page, and the slice ends with this page. For such bytes,
    // the caller promises all that a slice requires.
    let beginning = unsafe { slice::from_raw_parts(base, in_first_page) };
    // An error of `parse_beginning` may mean only that a table continues after this page, so it is
    // not returned. If it means anything else, `extent` or `parse` finds it again and returns it.
    if let Ok(image) = Image::parse_beginning(beginning) {
        return Ok(image);
    }
    let size = Image::extent(beginning)?;
    let end = base.addr().checked_add(size).ok_or(ParseError::Truncated)?;
    let second = base.addr().wrapping_add(in_first_page);
    for page in (second..end).step_by(PAGE) {
        probe(page)?;
    }
    let size = size.max(in_first_page); // the program headers may lie after the segment
    // SAFETY: `probe` accepted every page up to the end of the slice, which is the end of the image
    // or of the first page. For such bytes, the caller promises all that a slice requires. The
    // slice is at most 1 MiB long (`Image::extent`).
    let whole = unsafe { slice::from_raw_parts(base, size) };
    Ok(Image::parse(whole)?)
}
