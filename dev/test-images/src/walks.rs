//! The parser of the process's own format, which first calls use, agrees with the parser of any
//! format, and finds a symbol by the addresses of its code.

use crate::WIDE_HASH;
use crate::elf::{Any, Bytes, Format, Image, Native, ParsedImage, ProgramHeaders, Symbol};

/// How many symbols are looked up by address: each look-up passes all symbols.
const LOOK_UPS: usize = 8;

fn parse<F: Format>(bytes: &[u8]) -> Option<ParsedImage<'_, F>> {
    ParsedImage::new(
        &ProgramHeaders::<F>::read(Bytes::of_image(bytes).ok()?).ok()?,
        bytes,
    )
    .ok()
}

fn symbols<'a, F: Format>(image: &ParsedImage<'a, F>) -> Vec<Symbol<'a>> {
    image
        .entries()
        .filter_map(|entry| image.symbol(entry))
        .collect()
}

/// Fails unless they agree.
pub fn agree(bytes: &[u8]) {
    let (any, native) = (parse::<Any>(bytes), parse::<Native>(bytes));
    let Some(any) = any else {
        assert!(Image::parse(bytes).is_err(), "it is an image in no format");
        // Only the parser of any format can read it.
        let wide_hash = |native: ParsedImage<'_, Native>| WIDE_HASH.contains(&native.machine());
        assert!(
            native.is_none_or(wide_hash),
            "it is an image in one format only"
        );
        return;
    };
    let all = symbols(&any);
    let own = (any.class() == 2) == cfg!(target_pointer_width = "64") && bytes[5] == 1;
    if own && !WIDE_HASH.contains(&any.machine()) {
        let native = native.expect("an image in any format");
        assert_eq!(symbols(&native), all);
        assert_eq!(
            (native.load.origin(), native.load.end(), native.bytes()),
            (any.load.origin(), any.load.end(), any.bytes())
        );
    }
    for symbol in all.iter().take(LOOK_UPS) {
        let middle = symbol.value().wrapping_add((symbol.size().max(1) - 1) / 2);
        for address in [symbol.value(), middle] {
            let found = any.at(address).expect("there is such a symbol");
            // On arm, bit 0 says that the code is Thumb code.
            let inside = (address & !1).wrapping_sub(found.value & !1);
            let size = any
                .symbol(found)
                .map_or(u64::MAX, |found| found.size().max(1));
            assert!(inside <= size, "{address:#x} is not in {:#x}", found.value);
        }
    }
}

/// Fails unless the parser, given any prefix of an image, either refuses it or finds all symbols.
/// Returns the size of the shortest accepted prefix.
///
/// # Panics
/// If the bytes are not an image.
pub fn beginnings_agree(bytes: &[u8]) -> usize {
    let whole = Image::parse(bytes).expect("an image").parsed;
    let headers = Bytes::of_image(bytes)
        .and_then(ProgramHeaders::<Any>::read)
        .expect("an image");
    let all = symbols(&whole);
    let has_tables = |&size: &usize| {
        let Ok(image) = ParsedImage::new(&headers, &bytes[..size]) else {
            return false;
        };
        assert_eq!(symbols(&image), all, "in {size} bytes");
        true
    };
    let sizes: Vec<usize> = (0..=whole.load.end()).filter(has_tables).collect();
    assert_eq!(sizes.last(), Some(&whole.load.end()));
    sizes[0]
}
