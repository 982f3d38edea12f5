//! The images that take the most steps: the bounds hold for them, and are not much larger than what they take.

use super::elf::Image;
use super::image::{Part, Spec, Sym, Value};
use super::steps;

const COUNT: usize = 4000;
const LARGE: usize = 0x10000;

/// Strings of the largest size that is shown, which differ in their last bytes only.
fn long(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("{:l<1021}{index:02}", "")).collect()
}

/// As many 32-bit symbols as are worth the wait, each with this name, and with the last of as many versions as there may be.
fn crowded<'a>(name: &'a str, versions: &'a [String]) -> Spec<'a> {
    let symbol = |version: &'a String| Sym { value: Value::Exactly(0x40), ..Sym::func(name, version) };
    let last = versions.last().unwrap();
    let symbols = versions.iter().map(symbol).chain((versions.len()..COUNT).map(|_| symbol(last))).collect();
    let order = Part::ALL.into_iter().filter(|part| *part != Part::Text).collect();
    Spec { wide: false, machine: 40, symbols, order, sysv_hash: false, gnu_hash: false, ..Spec::default() }
}

#[test]
fn names_that_are_as_long_as_can_be() {
    let (names, versions) = (long(1), long(15));
    let rates = steps::bounded(&crowded(&names[0], &versions).build().bytes);
    assert!(rates.look_up > 75.0, "{rates:?}");
    assert!(rates.symbols > 75.0, "{rates:?}");
}

#[test]
fn a_resolver_that_finds_nothing() {
    let versions: Vec<_> = (0..15).map(|index| format!("V{index}")).collect();
    let rates = steps::bounded(&crowded("__vdso_clock_gettime", &versions).build().bytes);
    assert!(rates.resolve > 15.0, "{rates:?}");
}

/// Each symbol has a name that is too long to be shown, and so is passed over.
#[test]
fn names_that_never_end() {
    let endless = "e".repeat(30_000);
    let versions = vec!["V".to_owned()];
    let bytes = crowded(&endless, &versions).build().bytes;
    let rates = steps::bounded(&bytes);
    assert!(rates.symbols > 30.0, "{rates:?}");
    // Nor does a look-up of such a name compare it with each.
    let image = Image::parse(&bytes).unwrap();
    assert_eq!(steps::counted(|| image.symbol(&endless, None)), (None, 0));
    assert_eq!(steps::counted(|| image.symbol("e", Some(&endless))), (None, 0));
}

/// All that a parse reads but for a hash table: the dynamic section goes on to the image's end, as does the string table, in
/// which only the first byte ends a string.
#[test]
fn tables_that_go_on_to_the_end() {
    let symbols = vec![Sym { value: Value::Exactly(0x40), ..Sym::func("clock", "V") }];
    let spec =
        Spec { wide: false, symbols, sysv_hash: false, gnu_hash: false, versions: false, ..Spec::default() };
    let mut built = Spec { order: vec![Part::Symtab, Part::Dynamic, Part::Strtab], ..spec }.build();
    let (strtab, dynamic) = (built.at.strtab, built.at.dynamic);
    built.remove("DT_NULL");
    let end = dynamic + LARGE;
    built.bytes[strtab + 1..].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = 1);
    built.bytes.resize(end, 1);
    for (field, value) in [("DT_STRSZ", end - strtab), ("PT_DYNAMIC.p_filesz", end - dynamic)] {
        built.set(field, value as u64);
    }
    built.set("PT_LOAD.p_filesz", end as u64).set("PT_LOAD.p_memsz", end as u64);
    let rates = steps::bounded(&built.bytes);
    assert!(rates.parse > 1.1, "{rates:?}");
}
