//! What the parser promises of any bytes, tested through its public API.

use std::ffi::CStr;

use vdso_time::elf::{Image, ParseError, Symbol};

/// `Image::extent` reads only the first page.
const HEAD: usize = 4096;
/// No vDSO is larger.
const LARGEST: usize = 1 << 20;
/// A symbol with a longer name is hidden, so that no symbol costs more.
const LONGEST_NAME: usize = 1023;
/// How many names are looked up: each look-up may pass all symbols.
const LOOK_UPS: usize = 16;

/// Fails unless the bytes are refused, or are an image that keeps the promises.
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
        let strings = [Some(symbol.name()), symbol.version()];
        for string in strings.into_iter().flatten() {
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

/// Fails unless a look-up finds the first symbol with the name, and with the name and version.
fn look_ups_agree(image: &Image<'_>, symbols: &[Symbol<'_>]) {
    let text = |string: &CStr| {
        string
            .to_str()
            .ok()
            .filter(|string| !string.is_empty())
            .map(str::to_owned)
    };
    let named = symbols
        .iter()
        .filter_map(|symbol| Some((symbol, text(symbol.name())?)));
    for (symbol, name) in named.take(LOOK_UPS) {
        let first = symbols.iter().find(|other| other.name() == symbol.name());
        assert_eq!(image.symbol(&name, None).as_ref(), first);
        let unknown = image.symbol(&name, Some("LINUX_99"));
        if let Some(version) = symbol.version() {
            let is_same = |other: &&Symbol<'_>| {
                (other.name(), other.version()) == (symbol.name(), Some(version))
            };
            let first = symbols.iter().find(is_same);
            if let Some(version) = text(version) {
                assert_eq!(
                    image.symbol(&name, Some(&version)).as_ref(),
                    first,
                    "{version}"
                );
            }
            let other = |found: Symbol<'_>| found.version() != Some(c"LINUX_99");
            assert!(!unknown.is_some_and(other), "{name}: {unknown:?}");
        } else {
            assert!(
                unknown.is_none_or(|found| Some(&found) == first || found.version().is_some()),
                "{unknown:?}"
            );
        }
    }
    assert_eq!(image.symbol("", None), None);
}
