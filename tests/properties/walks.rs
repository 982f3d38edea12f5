//! The walk in the process's own format, which first calls take, sees what the walk in any format does; so does a walk that is
//! resumed; and a symbol is found by the addresses of its code.

use super::elf::{Any, Format, Head, Native, Symbol, Walk};

/// Of these machines `DT_HASH` has another shape, which only the walk in any format knows.
const WIDE_HASH: [u16; 2] = [22, 0x9026];
/// How many symbols are looked for by address: each time all are passed.
const LOOK_UPS: usize = 8;

fn walk<F: Format>(bytes: &[u8]) -> Option<Walk<'_, F>> {
    Walk::parse(bytes, Head::read(bytes).ok()?).ok()
}

fn symbols<'a, F: Format>(walk: &Walk<'a, F>) -> Vec<Symbol<'a>> {
    walk.entries(0).filter_map(|entry| walk.symbol(entry)).collect()
}

/// Resumes a walk on fewer bytes than it was begun with, which nothing in the library does: what is not there is not found, and that
/// is all.
fn cut(bytes: &[u8], whole: &Walk<'_, Any>) {
    let name = whole.entries(0).next().and_then(|entry| whole.symbol(entry));
    let name = name.and_then(|symbol| symbol.name().to_str().ok()).unwrap_or("name");
    for eighths in 0..8 {
        let walk = Walk::resume(&bytes[..whole.size() * eighths / 8], whole.outline());
        for entry in whole.entries(0).take(LOOK_UPS) {
            if let Some(symbol) = walk.symbol(entry) {
                assert!(walk.size() > 0, "{:?} of no bytes", symbol.name());
            }
        }
        assert!(symbols(&walk).len() <= bytes.len());
        let found = [walk.find(name, Some("LINUX_2.6")), walk.at(whole.origin())];
        assert!(walk.size() > 0 || found.iter().all(Option::is_none) && !walk.has_blanked_names());
        assert!(walk.entries(usize::MAX).next().is_none());
    }
}

/// Fails unless they agree.
pub(crate) fn agree(bytes: &[u8]) {
    let (any, native) = (walk::<Any>(bytes), walk::<Native>(bytes));
    let Some(any) = any else {
        let wide_hash = |native: Walk<'_, Native>| WIDE_HASH.contains(&native.machine());
        assert!(native.is_none_or(wide_hash), "it is an image in one format only");
        return;
    };
    let all = symbols(&any);
    let own = (any.class() == 2) == cfg!(target_pointer_width = "64") && bytes[5] == 1;
    if own && !WIDE_HASH.contains(&any.machine()) {
        let native = native.expect("an image in any format");
        assert_eq!(symbols(&native), all);
        assert_eq!((native.origin(), native.size(), native.base()), (any.origin(), any.size(), any.base()));
    }
    let resumed = Walk::resume(&bytes[..any.size()], any.outline());
    assert_eq!(symbols(&resumed), all);
    cut(bytes, &any);
    for symbol in all.iter().take(LOOK_UPS) {
        let middle = symbol.value().wrapping_add((symbol.size().max(1) - 1) / 2);
        for address in [symbol.value(), middle] {
            let found = any.at(address).expect("there is such a symbol");
            // On arm, bit 0 says that the code is Thumb code.
            let inside = (address & !1).wrapping_sub(found.value & !1);
            let size = any.symbol(found).map_or(u64::MAX, |found| found.size().max(1));
            assert!(inside <= size, "{address:#x} is not in {:#x}", found.value);
        }
    }
}
