//! The parser's guarantees for any bytes, tested through its public API.

#[cfg(any(target_os = "linux", target_os = "android"))]
use std::cell::RefCell;
use std::ffi::CStr;

use vdso_time::__private::parse_beginning;
use vdso_time::elf::{Image, ParseError, Symbol};
#[cfg(any(target_os = "linux", target_os = "android"))]
use vdso_time::vdso::Vdso;

/// `Image::extent` reads only the first page.
const HEAD: usize = 4096;
/// No vDSO is larger.
const LARGEST: usize = 1 << 20;
/// A symbol with a longer name is hidden, so that no symbol costs more.
const LONGEST_NAME: usize = 1023;
/// How many names are looked up: each look-up may pass all symbols.
const LOOK_UPS: usize = 16;

/// Fails unless the bytes are rejected, or are an image that keeps the guarantees.
pub fn keep<'a>(bytes: &'a [u8]) -> Option<Image<'a>> {
    let extent = extent(bytes);
    let image = match Image::parse(bytes) {
        Ok(image) => image,
        Err(error) => {
            assert!(
                extent.is_ok() || extent == Err(error),
                "{error:?}, {extent:?}"
            );
            assert!(!error.to_string().is_empty(), "{error:?}");
            return None;
        }
    };
    let extent = extent.expect("the same headers were read");
    assert!(extent <= bytes.len(), "{extent} bytes of {}", bytes.len());
    let symbols: Vec<Symbol<'a>> = image.symbols().collect();
    lie_inside(&image, &symbols, &bytes[..extent]);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    lie_in_memory(&bytes[..extent], &symbols);
    look_ups_agree(&image, &symbols);
    // Of the bytes after the image only program headers are read.
    if let Ok(cut) = Image::parse(&bytes[..extent]) {
        assert!(
            cut.symbols().eq(symbols),
            "the bytes after it change the image"
        );
    }
    Some(image)
}

/// Fails unless the extent is possible and depends on the first page alone.
fn extent(bytes: &[u8]) -> Result<usize, ParseError> {
    let extent = Image::extent(bytes);
    let head = &bytes[..bytes.len().min(HEAD)];
    assert_eq!(
        Image::extent(head),
        extent,
        "more than the first page counts"
    );
    assert!(!extent.is_ok_and(|extent| extent > LARGEST), "{extent:?}");
    extent
}

/// Fails unless the symbols fit into the image, and each name, version and value lies in it.
fn lie_inside(image: &Image<'_>, symbols: &[Symbol<'_>], bytes: &[u8]) {
    let entry = if image.class() == 2 { 24 } else { 16 };
    assert!(
        symbols.len() <= bytes.len() / entry,
        "{} symbols in {} bytes",
        symbols.len(),
        bytes.len()
    );
    let all = bytes.as_ptr_range();
    let inside = |string: &CStr| {
        let string = string.to_bytes_with_nul().as_ptr_range();
        all.start <= string.start && string.end <= all.end
    };
    for symbol in symbols {
        let mut strings = vec![symbol.name()];
        strings.extend(symbol.version());
        for string in strings {
            assert!(inside(string), "{symbol:?} has a string outside");
            assert!(
                string.count_bytes() <= LONGEST_NAME,
                "{} bytes",
                string.count_bytes()
            );
        }
        let offset = symbol.value().wrapping_sub(image.load_address());
        assert!(offset < bytes.len() as u64, "{symbol:?} lies outside");
    }
}

/// Fails unless the same image at a page of memory has the same symbols, at addresses of which each
/// leads back to a symbol.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[allow(unsafe_code, reason = "memory is parsed as an image")]
fn lie_in_memory(bytes: &[u8], symbols: &[Symbol<'_>]) {
    thread_local!(static MEMORY: RefCell<Memory> = RefCell::new(Memory::new()));
    MEMORY.with_borrow_mut(|memory| {
        let base = memory.fill(bytes).as_ptr();
        // SAFETY: a page begins there, the memory is larger than any image, and it does not change.
        let Ok(vdso) = (unsafe { Vdso::from_ptr(base) }) else {
            // More bytes follow than in `bytes`, but the program headers may lie after the segment.
            assert!(Image::parse(bytes).is_err(), "it is an image elsewhere");
            return;
        };
        for ((symbol, address), expected) in vdso.symbols().zip(symbols) {
            assert_eq!(symbol, *expected);
            let inside = address.addr().wrapping_sub(base.addr());
            assert!(
                inside < bytes.len(),
                "{symbol:?} has the address {address:p}"
            );
        }
        assert_eq!(vdso.symbols().count(), symbols.len());
        for (symbol, address) in vdso.symbols().take(LOOK_UPS) {
            let middle = (symbol.size().max(1) - 1) / 2;
            for pc in [
                address.addr(),
                address.addr().saturating_add(middle as usize),
            ] {
                if pc.wrapping_sub(base.addr()) >= vdso.size() {
                    assert_eq!(vdso.symbol_at(pc), None, "{pc:#x} lies outside");
                    continue;
                }
                let found = vdso.symbol_at(pc).expect("there is such a symbol");
                // On arm, bit 0 says that the code is Thumb code.
                let value = symbol.value().wrapping_add((pc - address.addr()) as u64);
                let inside = (value & !1).wrapping_sub(found.value() & !1);
                assert!(inside <= found.size().max(1), "{pc:#x} is not in {found:?}");
            }
        }
    });
}

/// Memory for the largest image, in which a page begins.
#[cfg(any(target_os = "linux", target_os = "android"))]
struct Memory(Vec<u8>);

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Memory {
    fn new() -> Self {
        Self(vec![0; LARGEST + 2 * HEAD])
    }

    /// Copies an image to the beginning of a page, which it returns.
    fn fill(&mut self, bytes: &[u8]) -> &[u8] {
        let start = self.0.as_ptr().align_offset(HEAD);
        let page = &mut self.0[start..];
        page[..bytes.len()].copy_from_slice(bytes);
        // `Vdso::from_ptr` reads all of the first page.
        if let Some(rest) = page.get_mut(bytes.len()..HEAD) {
            rest.fill(0);
        }
        page
    }
}

/// Fails unless the parser, given any prefix of an image, either refuses it or finds all symbols.
/// Returns the size of the shortest accepted prefix.
///
/// # Panics
/// If the bytes are not an image.
pub fn beginnings_agree(bytes: &[u8]) -> usize {
    let all: Vec<_> = Image::parse(bytes).expect("an image").symbols().collect();
    let extent = Image::extent(bytes).expect("an image");
    let mut shortest = None;
    for size in 0..=extent {
        if let Ok(image) = parse_beginning(&bytes[..size]) {
            assert!(image.symbols().eq(all.iter().copied()), "in {size} bytes");
            shortest.get_or_insert(size);
        }
    }
    assert!(
        parse_beginning(&bytes[..extent]).is_ok(),
        "the whole image is rejected"
    );
    shortest.expect("the whole image")
}

/// Fails unless a look-up finds the first symbol with the name, and with the name and version.
fn look_ups_agree(image: &Image<'_>, symbols: &[Symbol<'_>]) {
    let mut named = Vec::new();
    for symbol in symbols {
        if named.len() == LOOK_UPS {
            break;
        }
        if let Some(name) = text(symbol.name()) {
            named.push((symbol, name));
        }
    }
    for (symbol, name) in named {
        let first = symbols.iter().find(|other| other.name() == symbol.name());
        let found = image.symbol(name, None);
        assert_eq!(found.as_ref(), first);
        let unknown = image.symbol(name, Some("LINUX_99"));
        let Some(version) = symbol.version() else {
            if let Some(found) = unknown {
                let is_first = Some(&found) == first;
                assert!(is_first || found.version().is_some(), "{found:?}");
            }
            continue;
        };
        if let Some(version) = text(version) {
            let is_same = |other: &&Symbol<'_>| {
                other.name() == symbol.name() && other.version() == symbol.version()
            };
            let first = symbols.iter().find(is_same);
            let found = image.symbol(name, Some(version));
            assert_eq!(found.as_ref(), first, "{version}");
        }
        if let Some(found) = unknown {
            assert_eq!(found.version(), Some(c"LINUX_99"), "{name}: {found:?}");
        }
    }
    assert_eq!(image.symbol("", None), None);
}

/// Returns the string, if it is UTF-8 and not empty.
fn text(string: &CStr) -> Option<&str> {
    match string.to_str() {
        Ok("") | Err(_) => None,
        Ok(text) => Some(text),
    }
}
