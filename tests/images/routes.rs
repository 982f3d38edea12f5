//! Which symbol of which kernel's image answers each function: what every flavour of kernel exports, and what is made of it.

use test_images::{Spec, Sym, Value, WEAK};
use vdso_time::arch::{ALL, Abi, Function};
use vdso_time::{FallbackReason, Route, Routes, elf};

type Answer = Result<&'static str, FallbackReason>;

const NONE: Answer = Err(FallbackReason::NoSymbol);
const BLANKED: Answer = Err(FallbackReason::BlankedNames);
const RELOCATED: Answer = Err(FallbackReason::RelocatedImage);

const CLOCK: &str = "__vdso_clock_gettime";
const CLOCK64: &str = "__vdso_clock_gettime64";
const RES: &str = "__vdso_clock_getres";
const RES64: &str = "__vdso_clock_getres_time64";
const DAY: &str = "__vdso_gettimeofday";
const TIME: &str = "__vdso_time";
const CPU: &str = "__vdso_getcpu";
const K_CLOCK: &str = "__kernel_clock_gettime";
const K_RES: &str = "__kernel_clock_getres";
const K_DAY: &str = "__kernel_gettimeofday";
const K_TIME: &str = "__kernel_time";

fn abi(name: &str) -> &'static Abi {
    ALL.iter().find(|abi| abi.name == name).unwrap()
}

/// An image for an architecture: these symbols, in its class and of its version.
fn image(abi: &Abi, names: &[&'static str]) -> Spec<'static> {
    let version = if abi.name == "aarch64" { "LINUX_2.6.39" } else { "LINUX_2.6" };
    let mut symbols = vec![Sym::version(version)];
    symbols.extend(names.iter().map(|name| Sym::func(name, version)));
    Spec { wide: abi.class == 2, machine: abi.machine, symbols, ..Spec::default() }
}

/// The same, with the unprefixed weak aliases of `x86_64`, which nobody asks for.
fn with_aliases(mut spec: Spec<'static>) -> Spec<'static> {
    for symbol in spec.symbols.split_off(1) {
        let name = symbol.name.trim_start_matches("__vdso_");
        spec.symbols.extend([symbol, Sym { name, bind: WEAK, value: Value::Alias, ..symbol }]);
    }
    spec
}

/// The same, as arm's kernel leaves it that finds no usable timer at boot and knows these functions.
fn blank(mut spec: Spec<'static>, names: &[&str]) -> Spec<'static> {
    for symbol in &mut spec.symbols {
        symbol.blank = names.contains(&symbol.name);
    }
    spec
}

/// The same, as QEMU's loader puts it into memory.
fn qemu(spec: Spec<'static>) -> Spec<'static> {
    Spec { p_vaddr: 0x4080_0000, relocated: true, ..spec }
}

fn routes_of(spec: &Spec<'_>) -> Option<Routes> {
    Routes::of_image(&elf::Image::parse(&spec.build().bytes).unwrap())
}

fn routes(spec: &Spec<'_>) -> [Route; 5] {
    routes_of(spec).unwrap().functions().map(|(_, route)| route)
}

fn answers(spec: &Spec<'_>) -> [Answer; 5] {
    routes(spec).map(|route| match route {
        Route::Vdso { symbol, .. } => Ok(symbol),
        Route::Syscall { reason, .. } => Err(reason),
        other => panic!("{other:?}"),
    })
}

fn functions(abi: &Abi) -> [&Function; 5] {
    abi.functions().map(|(_, function)| function)
}

/// A kernel's image, and who answers time, gettimeofday, clock_gettime, clock_getres and getcpu.
type Flavour = (&'static str, &'static str, Spec<'static>, [Answer; 5]);

#[rustfmt::skip]
fn flavours() -> Vec<Flavour> {
    let x86_64 = |names: &[&'static str]| with_aliases(image(abi("x86_64"), names));
    let i386 = |names: &[&'static str]| {
        let mut spec = image(abi("x86"), names);
        spec.symbols.push(Sym::version("LINUX_2.5"));
        spec.symbols.push(Sym::func("__kernel_vsyscall", "LINUX_2.5"));
        spec
    };
    let arm64 = |names: &[&'static str]| Spec { sysv_hash: false, ..image(abi("aarch64"), names) };
    let arm = |names: &[&'static str]| Spec { gnu_hash: false, ..image(abi("arm"), names) };
    let compat = |names: &[&'static str]| Spec { thumb: true, sysv_hash: false, ..image(abi("arm"), names) };
    let prelinked = Spec { p_vaddr: 0xffff_ffff_ff70_0000, gnu_hash: false, ..x86_64(&[CLOCK, DAY, CPU, TIME]) };
    let old = [CLOCK, DAY, TIME];
    let [v4, v5, v7] = [&[CLOCK, DAY][..], &[CLOCK, DAY, RES, CLOCK64], &[CLOCK, DAY, RES, CLOCK64, RES64]];
    vec![
        ("3.15", "x86_64", x86_64(&[CLOCK, DAY, TIME, CPU]), [Ok(TIME), Ok(DAY), Ok(CLOCK), NONE, Ok(CPU)]),
        ("5.3", "x86_64", x86_64(&[CLOCK, DAY, TIME, CPU, RES]), [Ok(TIME), Ok(DAY), Ok(CLOCK), Ok(RES), Ok(CPU)]),
        ("6.11", "x86_64", x86_64(&[CLOCK, DAY, TIME, CPU, RES, "__vdso_getrandom"]), [Ok(TIME), Ok(DAY), Ok(CLOCK), Ok(RES), Ok(CPU)]),
        ("gVisor", "x86_64", prelinked, [Ok(TIME), Ok(DAY), Ok(CLOCK), NONE, RELOCATED]),
        ("QEMU", "x86_64", qemu(x86_64(&[CLOCK, DAY, TIME, CPU, RES])), [Ok(TIME), Ok(DAY), Ok(CLOCK), Ok(RES), RELOCATED]),
        ("no time", "x86_64", x86_64(&[CLOCK]), [Ok(CLOCK), NONE, Ok(CLOCK), NONE, NONE]),
        ("3.15", "x86", i386(&old), [Ok(CLOCK), Ok(DAY), Ok(CLOCK), NONE, NONE]),
        ("5.3", "x86", i386(&[CLOCK, DAY, TIME, RES, CLOCK64]), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES), NONE]),
        ("6.3", "x86", i386(&[CLOCK, DAY, TIME, RES, CLOCK64, CPU]), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES), Ok(CPU)]),
        ("7.0", "x86", i386(&[CLOCK, DAY, TIME, RES, CLOCK64, CPU, RES64]), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES64), Ok(CPU)]),
        ("7.3 without COMPAT_32BIT_TIME", "x86", i386(&[CLOCK64, CPU, RES64]), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES64), Ok(CPU)]),
        ("QEMU", "x86", qemu(i386(&[CLOCK, DAY, TIME, RES, CLOCK64, CPU])), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES), RELOCATED]),
        ("time alone", "x86", i386(&[TIME]), [Ok(TIME), NONE, NONE, NONE, NONE]),
        ("3.7", "aarch64", Spec { sysv_hash: true, ..arm64(&[K_CLOCK, K_DAY, K_RES]) }, [Ok(K_CLOCK), Ok(K_DAY), Ok(K_CLOCK), Ok(K_RES), NONE]),
        ("6.12", "aarch64", arm64(&[K_CLOCK, K_DAY, K_RES, "__kernel_getrandom"]), [Ok(K_CLOCK), Ok(K_DAY), Ok(K_CLOCK), Ok(K_RES), NONE]),
        ("Android", "aarch64", arm64(&[K_CLOCK, K_DAY, K_RES, K_TIME]), [Ok(K_TIME), Ok(K_DAY), Ok(K_CLOCK), Ok(K_RES), NONE]),
        ("elfuse", "aarch64", Spec { versions: false, sysv_hash: true, gnu_hash: false, ..arm64(&[K_CLOCK, K_DAY, K_RES]) }, [Ok(K_CLOCK), Ok(K_DAY), Ok(K_CLOCK), Ok(K_RES), NONE]),
        ("QEMU", "aarch64", qemu(arm64(&[K_CLOCK, K_DAY, K_RES])), [Ok(K_CLOCK), Ok(K_DAY), Ok(K_CLOCK), Ok(K_RES), NONE]),
        ("4.1", "arm", arm(v4), [Ok(CLOCK), Ok(DAY), Ok(CLOCK), NONE, NONE]),
        ("5.5", "arm", arm(v5), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES), NONE]),
        ("7.0", "arm", arm(v7), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES64), NONE]),
        ("7.3 without COMPAT_32BIT_TIME", "arm", arm(&[CLOCK64, RES64]), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES64), NONE]),
        ("Android", "arm", arm(&[CLOCK, DAY, TIME]), [Ok(CLOCK), Ok(DAY), Ok(CLOCK), NONE, NONE]),
        ("Android, time alone", "arm", arm(&[TIME]), [Ok(TIME), NONE, NONE, NONE, NONE]),
        ("arm64's compat, 5.3", "arm", compat(v5), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES), NONE]),
        ("arm64's compat, 7.0", "arm", compat(v7), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES64), NONE]),
        ("QEMU", "arm", qemu(compat(v5)), [Ok(CLOCK64), Ok(CLOCK64), Ok(CLOCK64), Ok(RES), NONE]),
        ("4.1, no timer", "arm", blank(arm(v4), v4), [BLANKED, BLANKED, BLANKED, BLANKED, NONE]),
        ("5.5 to 5.7, no timer", "arm", blank(arm(v5), v4), [BLANKED, BLANKED, BLANKED, BLANKED, NONE]),
        ("5.8, no timer", "arm", blank(arm(v5), &[CLOCK, DAY, CLOCK64]), [BLANKED, BLANKED, BLANKED, BLANKED, NONE]),
        ("7.0, no timer", "arm", blank(arm(v7), v7), [BLANKED, BLANKED, BLANKED, BLANKED, NONE]),
        ("7.3 without COMPAT_32BIT_TIME, no timer", "arm", blank(arm(&[CLOCK64, RES64]), v7), [BLANKED, BLANKED, BLANKED, BLANKED, NONE]),
        ("Android, no timer", "arm", blank(arm(&[CLOCK, DAY, TIME]), v4), [Ok(TIME), BLANKED, BLANKED, BLANKED, NONE]),
        ("Android 5.5, no timer", "arm", blank(arm(&[CLOCK, DAY, RES, CLOCK64, TIME]), v4), [Ok(TIME), BLANKED, BLANKED, BLANKED, NONE]),
    ]
}

#[test]
fn every_flavour_of_kernel_answers_with_the_best_that_it_has() {
    for (kernel, arch, spec, expected) in flavours() {
        assert_eq!(answers(&spec), expected, "{arch}, {kernel}");
    }
}

#[test]
fn a_route_has_the_symbol_s_version_and_place_or_the_first_system_call() {
    for (kernel, arch, spec, _) in flavours() {
        let built = spec.build();
        for (route, function) in routes(&spec).into_iter().zip(functions(abi(arch))) {
            match route {
                Route::Vdso { symbol, version, address, .. } => {
                    let described = built.callable().find(|described| described.name == symbol).unwrap();
                    assert_eq!(
                        version,
                        described.version.filter(|_| spec.versions),
                        "{arch}, {kernel}: {symbol}"
                    );
                    assert_eq!(address, described.st_value() as usize, "{arch}, {kernel}: {symbol}");
                }
                Route::Syscall { number, .. } => {
                    assert_eq!(number, function.syscalls[0].number, "{arch}, {kernel}");
                }
                other => panic!("{arch}, {kernel}: {other:?}"),
            }
        }
    }
}

/// Every symbol that a table names, once.
fn all_names(abi: &Abi) -> Vec<&'static str> {
    let mut names: Vec<_> =
        functions(abi).into_iter().flat_map(|function| function.candidates).map(|row| row.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn every_symbol_fails_alone() {
    for abi in ALL {
        let names = all_names(abi);
        let full = answers(&image(abi, &names));
        for removed in &names {
            let rest: Vec<_> = names.iter().copied().filter(|name| name != removed).collect();
            let now = answers(&image(abi, &rest));
            for ((now, before), function) in now.into_iter().zip(full).zip(functions(abi)) {
                let next = function.candidates.iter().map(|row| row.name).find(|name| name != removed);
                let expected =
                    if before == Ok(*removed) { next.ok_or(FallbackReason::NoSymbol) } else { before };
                assert_eq!(now, expected, "{} without {removed}", abi.name);
            }
        }
    }
}

/// x32 and ILP32 have the number of their machine in the other class.
#[test]
fn an_image_of_an_architecture_without_a_table_has_no_routes() {
    for (kernel, arch, spec, _) in flavours() {
        let (wide, p_vaddr) = (!spec.wide, spec.p_vaddr & 0xffff_ffff);
        let other_class = Spec { wide, p_vaddr, ..spec.clone() };
        assert_eq!(routes_of(&other_class), None, "{arch}, {kernel}");
        assert_eq!(routes_of(&Spec { machine: 0xffff, ..spec }), None, "{arch}, {kernel}");
    }
}

#[test]
fn the_right_name_of_the_wrong_version_is_not_taken() {
    for (kernel, arch, mut spec, _) in flavours().into_iter().filter(|(_, _, spec, _)| spec.versions) {
        for symbol in &mut spec.symbols {
            symbol.blank = false;
            symbol.version = Some("LINUX_2.6.3");
        }
        let spec = Spec { p_vaddr: 0, ..spec };
        assert_eq!(answers(&spec), [NONE; 5], "{arch}, {kernel}");
    }
}

#[test]
fn without_version_tables_the_name_is_enough() {
    for (kernel, arch, spec, expected) in flavours() {
        let spec = Spec { versions: false, ..spec };
        assert_eq!(answers(&spec), expected, "{arch}, {kernel}");
    }
}

#[test]
fn a_blank_name_on_any_other_architecture_costs_that_function_alone() {
    let spec = blank(image(abi("x86_64"), &[CLOCK, DAY, TIME, CPU, RES]), &[DAY]);
    assert_eq!(answers(&spec), [Ok(TIME), NONE, Ok(CLOCK), Ok(RES), Ok(CPU)]);
    let spec = blank(image(abi("aarch64"), &[K_CLOCK, K_DAY, K_RES]), &[K_CLOCK]);
    assert_eq!(answers(&spec), [NONE, Ok(K_DAY), NONE, Ok(K_RES), NONE]);
}
