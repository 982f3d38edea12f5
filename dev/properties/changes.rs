//! Sound images with one change. `fuzz` makes several.

use test_images::corrupt::EXTREMES;
use test_images::kinds::kinds;
use test_images::{Built, Part, Spec, assert_keeps_promises, promises};

#[test]
fn a_change_of_any_byte_keeps_the_promises() {
    for (kind, spec) in kinds() {
        let Built { mut bytes, .. } = spec.build();
        let mut images = 0;
        for at in 0..bytes.len() {
            let old = bytes[at];
            for new in [0, 1, 0xff, old ^ 0x80] {
                bytes[at] = new;
                images += usize::from(assert_keeps_promises(&bytes));
            }
            bytes[at] = old;
        }
        assert!(images > bytes.len(), "{kind}: {images} images");
    }
}

#[test]
fn a_change_of_any_number_keeps_the_promises() {
    for (_, spec) in kinds() {
        let sound = spec.build();
        let start = sound.get("PT_LOAD.p_vaddr");
        for field in sound.fields.iter().map(|field| &field.name) {
            let old = sound.get(field);
            let near = [
                old.wrapping_sub(1),
                old.wrapping_add(1),
                !old,
                old << 1,
                0xffff_ffff,
                0xffff_fff0,
            ];
            // Dynamic entries are addresses: they point anywhere in the image.
            let step = if field.starts_with("DT_") { 8 } else { 512 };
            let inside = (0..=sound.bytes.len() as u64)
                .step_by(step)
                .map(|at| start.wrapping_add(at));
            for value in EXTREMES.into_iter().chain(near).chain(inside) {
                assert_keeps_promises(&sound.clone().set(field, value).bytes);
            }
        }
        for size in 0..sound.bytes.len() as u64 {
            assert_keeps_promises(&sound.clone().resize(size).bytes);
            assert!(
                !assert_keeps_promises(&sound.bytes[..size as usize]),
                "{size} bytes"
            );
        }
    }
}

/// Cuts images after their tables: the parser need not read the pages with the code.
#[test]
fn a_beginning_with_all_tables_has_all_symbols() {
    use Part::{Dynamic, GnuHash, Hash, Strtab, Symtab, Text, Verdef, Versym};
    for (kind, spec) in kinds() {
        for last in [Hash, GnuHash, Symtab, Strtab, Versym, Verdef, Dynamic] {
            let order = Part::with_last(&[last, Text]);
            let mut built = Spec {
                order,
                ..spec.clone()
            }
            .build();
            let shortest = promises::beginnings_agree(&built.bytes);
            // Otherwise the last symbol or the last name may follow.
            if spec.sysv_hash || spec.gnu_hash {
                assert!(
                    shortest <= built.at(Text),
                    "{kind}, {last:?}: {shortest} bytes"
                );
            }
            promises::beginnings_agree(&built.remove("DT_STRSZ").bytes);
        }
    }
}
