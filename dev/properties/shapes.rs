//! Sound images of every shape: the parser finds the symbols of the description.

use proptest::prelude::*;
use proptest::sample::select;
use test_images::kinds::{PRELINKED, assert_described, kinds};
use test_images::{PT_ARM_EXIDX, PT_DYNAMIC, PT_LOAD, PT_PHDR, Part, Spec, Sym, Value, WIDE_HASH};

use super::check;

const MACHINES: &[u16] = &[3, 20, 21, 40, 62, 183, 243, WIDE_HASH[0], WIDE_HASH[1]];

/// Chooses any symbol of any kind of image.
fn symbol() -> impl Strategy<Value = Sym<'static>> {
    select(
        kinds()
            .into_iter()
            .flat_map(|(_, spec)| spec.symbols)
            .collect::<Vec<_>>(),
    )
}

/// Chooses the two necessary segments and up to three others, in any order.
fn segments() -> impl Strategy<Value = Vec<u32>> {
    let others = prop::collection::vec(select(&[0, PT_PHDR, PT_ARM_EXIDX, 0x6474_e550][..]), 0..4);
    others
        .prop_map(|others| [&[PT_LOAD, PT_DYNAMIC], &others[..]].concat())
        .prop_shuffle()
}

/// Chooses a load address. It must not give a table the address 0, which means that there is no
/// table. Parts have offsets that are multiples of 8, so the addresses are not multiples, or cannot
/// wrap.
fn load_address() -> impl Strategy<Value = u64> {
    prop_oneof![
        select(&[0, 0x1000, 0x7f12_3456_7000, PRELINKED][..]),
        any::<u64>().prop_map(|any| any | 2)
    ]
}

/// Describes any sound image.
fn spec() -> impl Strategy<Value = Spec<'static>> {
    let traits = (any::<[bool; 6]>(), select(MACHINES));
    let place = (
        load_address(),
        prop_oneof![3 => Just(0), 1 => (0x50..0x100_usize).prop_map(|eight| eight * 8)],
    );
    let extent = prop_oneof![300 => Just(0), 100 => 0..0x2000_usize, 1 => Just(1 << 20)];
    let order = Just(Part::ALL.to_vec()).prop_shuffle();
    let rest = (
        prop::collection::vec(symbol(), 0..16),
        segments(),
        order,
        extent,
    );
    (traits, place, rest).prop_map(|(traits, place, rest)| {
        let ([wide, sysv_hash, gnu_hash, versions, relocated, thumb], machine) = traits;
        let ((p_vaddr, p_offset), (mut symbols, segments, mut order, mut extent)) = (place, rest);
        let most = if wide { u64::MAX } else { u32::MAX.into() };
        for symbol in &mut symbols {
            if let Value::Exactly(value) = &mut symbol.value {
                *value &= most;
            }
        }
        if !sysv_hash && !gnu_hash {
            // The symbols then end at the string table.
            order.retain(|part| *part != Part::Symtab);
            let strtab = order.iter().position(|part| *part == Part::Strtab).unwrap();
            order.insert(strtab, Part::Symtab);
            if order.last() == Some(&Part::Strtab) {
                extent = 0;
            }
        }
        // No 32-bit image crosses the end of the address space.
        let p_vaddr = if wide {
            p_vaddr
        } else {
            (p_vaddr & most).min(0xffe0_0002)
        };
        let p_vaddr = p_vaddr.max(p_offset as u64);
        Spec {
            wide,
            machine,
            symbols,
            sysv_hash,
            gnu_hash,
            versions,
            p_vaddr,
            p_offset,
            relocated,
            thumb,
            segments,
            order,
            extent,
            ..Spec::default()
        }
    })
}

#[test]
fn a_sound_image_shows_the_symbols_of_its_description() {
    let images = check(8_000, &spec(), |spec| assert_described("any", &spec) > 0);
    assert!(images > 0.5, "{images} of them have symbols");
}
