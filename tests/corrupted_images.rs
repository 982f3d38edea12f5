//! Whatever one byte or one number of an image says, the walker does not panic, shows no symbol outside the image, finds by
//! name what it shows in order, and takes a time that grows with the image's size alone.

use test_support::image;
use test_support::image::kinds as image_kinds;

use vdso_time::elf::Image;

use image::{Built, Part, Spec, Sym};
use image_kinds::{PRELINKED, aarch64, arm, assert_sound, i386, x86_64};

/// Small images of both classes and both byte orders.
fn bases() -> [(&'static str, Spec<'static>); 6] {
    let s390 = Spec { big_endian: true, machine: 22, wide_hash: true, sysv_hash: true, ..aarch64() };
    [
        ("x86_64", x86_64()),
        ("i386", Spec { p_vaddr: 0x4000, ..i386() }),
        ("arm", Spec { thumb: true, ..arm() }),
        ("aarch64", Spec { p_vaddr: PRELINKED, ..aarch64() }),
        ("s390x", s390),
        ("big-endian, 32 bits, neither", Spec { big_endian: true, sysv_hash: false, ..arm() }),
    ]
}

/// The numbers at which sums, products and casts go over, and those around the sizes of structures.
const EXTREMES: [u64; 16] = [
    0,
    1,
    7,
    19,
    20,
    0xff,
    0x1000,
    0x7fff,
    0xffff,
    0x10_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fff0,
    0xffff_ffff,
    u64::MAX - 15,
    u64::MAX,
];

/// Fails unless the bytes are refused, or make an image that keeps the promises. Says whether they are an image.
fn keeps_promises(bytes: &[u8], what: &dyn Fn() -> String) -> bool {
    let head = &bytes[..bytes.len().min(4096)];
    let Ok(image) = Image::parse(bytes) else { return false };
    let extent = Image::extent(head).unwrap_or_else(|error| panic!("{}: {error}", what()));
    assert!(extent <= bytes.len(), "{}", what());
    assert_sound(&image, extent, what);
    // Bytes behind the image change nothing.
    if let Ok(cut) = Image::parse(&bytes[..extent]) {
        assert_eq!(seen_lossy(&cut), seen_lossy(&image), "{}", what());
    }
    true
}

/// The names and values, whatever bytes they have.
fn seen_lossy(image: &Image<'_>) -> Vec<(Vec<u8>, u64)> {
    image.symbols().map(|symbol| (symbol.name().to_bytes().to_vec(), symbol.value())).collect()
}

#[test]
fn whatever_one_byte_says() {
    for (name, spec) in bases() {
        let built = spec.build();
        let mut images = 0;
        for at in 0..built.bytes.len() {
            let old = built.bytes[at];
            for new in [0, 1, 0xff, old ^ 0x80] {
                let mut bytes = built.bytes.clone();
                bytes[at] = new;
                let what = || format!("{name}: {new:#x} at {at}");
                images += usize::from(keeps_promises(&bytes, &what));
            }
        }
        assert!(images > built.bytes.len(), "{name}: most bytes do not make it unreadable, {images}");
    }
}

/// The values that a field is given: extremes, its neighbours, and each place in the image.
fn values(built: &Built<'_>, field: &str) -> Vec<u64> {
    let old = built.get(field);
    let start = built.get("PT_LOAD.p_vaddr");
    let near = [old.wrapping_sub(1), old.wrapping_add(1), !old, old << 1];
    let steps = if field.starts_with("DT_") { 8 } else { 256 };
    let places = (0..=built.bytes.len() as u64).step_by(steps).map(|offset| start.wrapping_add(offset));
    EXTREMES.into_iter().chain(near).chain(places).collect()
}

#[test]
fn whatever_one_number_says() {
    for (name, spec) in bases() {
        let base = spec.build();
        for field in base.fields.iter().map(|field| &field.name) {
            for value in values(&base, field) {
                let mut built = base.clone();
                built.set(field, value);
                keeps_promises(&built.bytes, &|| format!("{name}: {field} is {value:#x}"));
            }
        }
    }
}

#[test]
fn whatever_two_numbers_of_the_headers_and_the_dynamic_section_say() {
    for (name, spec) in [("x86_64", x86_64()), ("arm", arm())] {
        let base = spec.build();
        let is_header =
            |name: &&str| name.starts_with("e_ph") || name.starts_with("PT_") || name.starts_with("DT_");
        let fields: Vec<_> = base.fields.iter().map(|field| field.name.as_str()).filter(is_header).collect();
        for (index, first) in fields.iter().enumerate() {
            for second in &fields[..index] {
                for (one, other) in
                    [(0, 0), (0, u64::MAX), (u64::MAX, 0), (u64::MAX, u64::MAX), (8, u64::MAX - 7)]
                {
                    let mut built = base.clone();
                    built.set(first, one).set(second, other);
                    let what = || format!("{name}: {first} is {one:#x}, {second} is {other:#x}");
                    keeps_promises(&built.bytes, &what);
                }
            }
        }
    }
}

#[test]
fn wherever_the_image_ends() {
    for (name, spec) in bases() {
        let built = spec.build();
        for size in 0..built.bytes.len() as u64 {
            let mut short = built.clone();
            short.set("PT_LOAD.p_filesz", size).set("PT_LOAD.p_memsz", size);
            keeps_promises(&short.bytes, &|| format!("{name}: {size} bytes"));
        }
    }
}

/// The largest image that there can be, with so many symbols, and behind them, where each finds its name, one string of
/// `filler`.
fn crowded(symbols: usize, filler: u8) -> Vec<u8> {
    let order = vec![Part::Dynamic, Part::Text, Part::Strtab, Part::Symtab];
    let spec = Spec { symbols: vec![Sym::func("a", "v")], versions: false, sysv_hash: false, ..arm() };
    let mut built = Spec { order, extent: 1 << 20, gnu_hash: false, ..spec }.build();
    let entry = built.bytes[built.bytes.len() - 16..].to_vec();
    let (from, end) = (built.at.text + 64, built.bytes.len());
    let strings = from + 16 * symbols;
    for place in built.bytes[from..strings].chunks_exact_mut(16) {
        place.copy_from_slice(&entry);
    }
    built.bytes[strings..end - 1].fill(filler);
    built.bytes[end - 1] = 0;
    built
        .set("DT_SYMTAB", from as u64)
        .set("DT_STRTAB", strings as u64)
        .set("DT_STRSZ", (end - strings) as u64);
    built.bytes
}

#[test]
fn a_crowd_of_symbols_is_shown_whole() {
    let bytes = crowded(32_000, 0);
    let image = Image::parse(&bytes).unwrap();
    assert_eq!(image.symbols().count(), 32_000);
    assert!(image.symbol("__vdso_time", None).is_none());
}

/// Or each of them would read half of the image.
#[test]
fn a_symbol_whose_name_is_absurdly_long_is_hidden() {
    let bytes = crowded(32_000, b'a');
    let image = Image::parse(&bytes).unwrap();
    assert_eq!(image.symbols().count(), 0);
    assert!(image.symbol(&"a".repeat(2000), None).is_none());
}
