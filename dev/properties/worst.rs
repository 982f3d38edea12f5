//! Images that take the most steps. The bounds hold for them and are close.

use test_images::elf::Image;
use test_images::steps::{self, Rates};
use test_images::{Built, Part, Spec, Sym, Value, keeps_promises};

const COUNT: usize = 4000;
const LARGE: usize = 0x10000;

/// Fails unless the bytes are parsed within the bounds. Prints the steps for each byte.
fn bounded(built: &Built<'_>) -> Rates {
    let rates = steps::bounded(&built.bytes);
    println!("{rates:?}");
    rates
}

/// Strings of the largest size that differ only in their last bytes.
fn long(count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("{:l<1021}{index:02}", ""))
        .collect()
}

/// Describes many 32-bit symbols with this name, most of them of the last version.
fn crowded<'a>(name: &'a str, versions: &'a [String]) -> Spec<'a> {
    let symbol = |version: &'a String| Sym {
        value: Value::Exactly(0x40),
        ..Sym::func(name, version)
    };
    let last = versions.last().unwrap();
    let symbols = versions
        .iter()
        .map(symbol)
        .chain((versions.len()..COUNT).map(|_| symbol(last)))
        .collect();
    let order = Part::ALL[..7].to_vec();
    Spec {
        wide: false,
        machine: 40,
        symbols,
        order,
        sysv_hash: false,
        gnu_hash: false,
        ..Spec::default()
    }
}

#[test]
fn the_longest_names_stay_within_the_bounds() {
    let (names, versions) = (long(1), long(15));
    let rates = bounded(&crowded(&names[0], &versions).build());
    assert!(rates.look_up > 75.0, "{rates:?}");
    assert!(rates.symbols > 75.0, "{rates:?}");
}

#[test]
fn a_first_call_that_finds_nothing_stays_within_its_bound() {
    let versions: Vec<_> = (0..15).map(|index| format!("V{index}")).collect();
    let rates = bounded(&crowded("__vdso_clock_gettime", &versions).build());
    assert!(rates.resolve > 15.0, "{rates:?}");
    // An image with more definitions is refused.
    assert!(!keeps_promises(&crowded("clock", &long(16)).build().bytes));
}

#[test]
fn hidden_symbols_stay_within_the_bound() {
    let endless = "e".repeat(30_000);
    let versions = vec!["V".to_owned()];
    let built = crowded(&endless, &versions).build();
    let rates = bounded(&built);
    assert!(rates.symbols > 30.0, "{rates:?}");
    // A look-up of such a name compares nothing.
    let image = Image::parse(&built.bytes).unwrap();
    assert_eq!(
        steps::counted(|| image.symbol(&endless[..1024], None)),
        (None, 0)
    );
    assert_eq!(
        steps::counted(|| image.symbol("e", Some(&endless))),
        (None, 0)
    );
}

/// Lets the dynamic section and the string table reach the end of the image. Only the first byte of
/// the string table is a NUL.
#[test]
fn the_longest_tables_stay_within_the_bound_of_parse() {
    let symbols = vec![Sym {
        value: Value::Exactly(0x40),
        ..Sym::func("clock", "V")
    }];
    let spec = Spec {
        wide: false,
        symbols,
        sysv_hash: false,
        gnu_hash: false,
        versions: false,
        ..Spec::default()
    };
    let mut built = Spec {
        order: vec![Part::Symtab, Part::Dynamic, Part::Strtab],
        ..spec
    }
    .build();
    let (strtab, dynamic) = (built.at(Part::Strtab), built.at(Part::Dynamic));
    built.remove("DT_NULL");
    let end = dynamic + LARGE;
    built.bytes[strtab + 1..]
        .iter_mut()
        .filter(|byte| **byte == 0)
        .for_each(|byte| *byte = 1);
    built.bytes.resize(end, 1);
    for (field, value) in [
        ("DT_STRSZ", end - strtab),
        ("PT_DYNAMIC.p_filesz", end - dynamic),
    ] {
        built.set(field, value as u64);
    }
    built.resize(end as u64);
    let rates = bounded(&built);
    assert!(rates.parse > 1.1, "{rates:?}");
}
