//! Images in memory: nothing outside is read, and symbols have the addresses of the pages.
#![allow(unsafe_code, reason = "memory is parsed as an image")]

use test_images::kinds::{aliased, arm, described, kinds, seen, x86_64};
use test_images::{Spec, Sym, UNDEF, Value, WEAK};
use test_support::{Pages, page_size};
use vdso_time::elf::ParseError;
use vdso_time::vdso::Vdso;

const V: &str = "LINUX_2.6";

fn vdso(pages: &Pages) -> Result<Vdso<'_>, ParseError> {
    // SAFETY: the pages are readable, no test calls `fill` while it uses the result, and the extent
    // of every image that is copied here is at most `size`, or is rejected.
    unsafe { Vdso::from_ptr(pages.base.as_ptr().cast()) }
}

#[test]
fn an_image_between_unreadable_pages_has_all_symbols_at_its_base_plus_their_offset() {
    let pages = Pages::new(2);
    // An image of whole pages, with addresses of this machine.
    for (kind, mut spec) in kinds() {
        if usize::try_from(spec.p_vaddr).is_err() {
            continue;
        }
        spec.extent = pages.size;
        let built = spec.build();
        pages.fill(&built.bytes);
        let vdso = vdso(&pages).unwrap();
        assert_eq!(
            (vdso.base().addr(), vdso.size()),
            (pages.addr(), pages.size),
            "{kind}"
        );
        assert_eq!(
            seen(vdso.image().symbols()),
            described(&spec, &built),
            "{kind}"
        );
        assert_eq!(
            seen(vdso.symbols().map(|(symbol, _)| symbol)),
            described(&spec, &built),
            "{kind}"
        );
        for (symbol, address) in vdso.symbols() {
            let inside =
                (symbol.value().wrapping_sub(spec.p_vaddr) + spec.p_offset as u64) as usize;
            let address = address.addr();
            assert_eq!(address, pages.addr() + inside, "{kind}: {symbol:?}");
            let name = symbol.name().to_str().unwrap();
            let is_weak = built
                .callable()
                .any(|sym| sym.bind == WEAK && sym.st_name() == name);
            if symbol.size() == 0 || is_weak {
                continue;
            }
            let start = address & !usize::from(spec.thumb);
            let end = start + symbol.size() as usize;
            for pc in [start, start + 1, end - 1] {
                assert_eq!(vdso.symbol_at(pc), Some(symbol), "{kind}: {pc:#x}");
            }
            for pc in [start - 1, end] {
                assert_ne!(vdso.symbol_at(pc), Some(symbol), "{kind}: {pc:#x}");
            }
        }
        let addresses: Vec<_> = vdso.symbols().map(|(_, address)| address).collect();
        for symbol in &built.symbols {
            let Some(address) = vdso.symbol_address(symbol.st_name(), None) else {
                continue;
            };
            assert_ne!(symbol.shndx, UNDEF, "{kind}: {symbol:?}");
            assert!(addresses.contains(&address), "{kind}: {symbol:?}");
        }
        assert_eq!(
            vdso.symbol_at(pages.addr()),
            None,
            "{kind}: the headers are not code"
        );
    }
}

#[test]
fn bit_0_of_an_address_is_thumb_on_arm_alone() {
    let pages = Pages::new(1);
    for (machine, size, thumb) in [(40, 32, true), (40, 0, true), (3, 32, false)] {
        let symbols = vec![Sym {
            size,
            ..Sym::func("clock", V)
        }];
        pages.fill(
            &Spec {
                machine,
                thumb: true,
                symbols,
                extent: page_size(),
                ..arm()
            }
            .build()
            .bytes,
        );
        let vdso = vdso(&pages).unwrap();
        let (clock, address) = vdso.symbols().next().unwrap();
        assert!(
            vdso.functions().clock_gettime.is_none(),
            "another architecture's, or of another name"
        );
        let address = address.addr();
        assert_eq!(address & 1, 1, "the call needs it");
        assert_eq!(vdso.symbol_at(address), Some(clock));
        assert_eq!(
            vdso.symbol_at(address - 1) == Some(clock),
            thumb,
            "machine {machine}"
        );
    }
}

#[test]
fn a_program_counter_finds_the_global_symbol_of_an_alias() {
    let pages = Pages::new(1);
    let [global, alias] = aliased("__vdso_time");
    let first = Sym {
        value: Value::Next,
        ..alias
    };
    let second = Sym {
        value: Value::Alias,
        ..global
    };
    let weak = Sym {
        bind: WEAK,
        ..global
    };
    for symbols in [vec![global, alias], vec![first, second], vec![weak]] {
        // Without DT_GNU_HASH, the table keeps this order.
        pages.fill(
            &Spec {
                symbols,
                gnu_hash: false,
                extent: page_size(),
                ..x86_64()
            }
            .build()
            .bytes,
        );
        let vdso = vdso(&pages).unwrap();
        let (_, address) = vdso.symbols().next().unwrap();
        let pc = address.addr();
        assert_eq!(vdso.symbol_at(pc).unwrap().name(), c"__vdso_time");
    }
}

#[test]
fn no_symbol_extends_past_the_image_and_one_without_a_size_has_one_address() {
    let pages = Pages::new(1);
    for size in [0, u64::MAX] {
        let symbols = vec![Sym {
            size,
            ..Sym::func("clock", V)
        }];
        let built = Spec {
            symbols,
            ..x86_64()
        }
        .build();
        pages.fill(&built.bytes);
        let vdso = vdso(&pages).unwrap();
        let base = pages.addr();
        let len = built.bytes.len();
        assert_eq!(vdso.size(), len);
        let (_, address) = vdso.symbols().next().unwrap();
        let start = address.addr();
        let has = |pc| vdso.symbol_at(pc).is_some();
        assert_eq!(
            [has(start), has(start - 1), has(start + 1)],
            [true, false, size != 0]
        );
        assert_eq!(
            [has(base + len - 1), has(base + len), has(usize::MAX)],
            [size != 0, false, false]
        );
    }
}

#[test]
fn an_image_that_is_too_large_is_refused_from_the_first_page() {
    let pages = Pages::new(1);
    pages.fill(&x86_64().build().resize(1 << 30).bytes);
    assert_eq!(vdso(&pages).map(|_| ()), Err(ParseError::TooLarge));
}
