//! Which symbol answers each function, for the image of every flavour of kernel.

use test_images::kinds::PRELINKED;
use test_images::{Spec, Sym, Value, WEAK, names, promises};
use vdso_time::__private::{ALL, Abi};
use vdso_time::{Route, Routes};

/// The ways in which an image differs from one that a linker made and Linux mapped.
#[derive(Clone, Copy)]
enum As {
    Linked,
    /// The same, without `DT_HASH`.
    GnuHash,
    Prelinked,
    /// Relocated by QEMU's loader.
    Qemu,
    Unversioned,
    /// Thumb code, in arm64's image for 32-bit processes.
    Thumb,
    /// arm's kernel found no usable timer, and blanked these names at boot.
    NoTimer(&'static str),
}

use As::{GnuHash, Linked, NoTimer, Prelinked, Qemu, Thumb, Unversioned};

/// The kernel, its architecture, the functions that its image has, and who answers time,
/// gettimeofday, clock_gettime, clock_getres and getcpu: a symbol, or the reason why none does.
type Flavour = (&'static str, &'static str, &'static str, As, &'static str);

/// The short names and reasons of the table, and the names with each prefix.
const NAMES: [(&str, &str, &str); 11] = [
    ("clock", "__vdso_clock_gettime", "__kernel_clock_gettime"),
    ("clock64", "__vdso_clock_gettime64", ""),
    ("res", "__vdso_clock_getres", "__kernel_clock_getres"),
    ("res64", "__vdso_clock_getres_time64", ""),
    ("day", "__vdso_gettimeofday", "__kernel_gettimeofday"),
    ("time", "__vdso_time", "__kernel_time"),
    ("cpu", "__vdso_getcpu", "__kernel_getcpu"),
    ("random", "__vdso_getrandom", "__kernel_getrandom"),
    ("-", "NoSymbol", "NoSymbol"),
    ("blank", "BlankedNames", "BlankedNames"),
    ("moved", "NonzeroLoadAddress", "NonzeroLoadAddress"),
];

const OLD: &str = "clock day";
const ARM_5: &str = "clock day res clock64";
const ARM_7: &str = "clock day res clock64 res64";
const NO_TIMER: &str = "blank blank blank blank -";

const FLAVOURS: &[Flavour] = &[
    (
        "3.15",
        "x86_64",
        "clock day time cpu",
        Linked,
        "time day clock - cpu",
    ),
    (
        "5.3",
        "x86_64",
        "clock day time cpu res",
        Linked,
        "time day clock res cpu",
    ),
    (
        "6.11",
        "x86_64",
        "clock day time cpu res random",
        Linked,
        "time day clock res cpu",
    ),
    (
        "gVisor",
        "x86_64",
        "clock day cpu time",
        Prelinked,
        "time day clock - moved",
    ),
    (
        "QEMU",
        "x86_64",
        "clock day time cpu res",
        Qemu,
        "time day clock res moved",
    ),
    (
        "UML 7.2",
        "x86_64",
        "clock day time",
        Prelinked,
        "time day clock - -",
    ),
    ("no time", "x86_64", "clock", Linked, "clock - clock - -"),
    ("2.6", "x86", "time", Prelinked, "- - - - -"),
    (
        "3.15",
        "x86",
        "clock day time",
        Linked,
        "clock clock clock - -",
    ),
    (
        "5.3",
        "x86",
        "clock day time res clock64",
        Linked,
        "clock64 clock64 clock64 res -",
    ),
    (
        "6.3",
        "x86",
        "clock day time res clock64 cpu",
        Linked,
        "clock64 clock64 clock64 res cpu",
    ),
    (
        "7.0",
        "x86",
        "clock day time res clock64 cpu res64",
        Linked,
        "clock64 clock64 clock64 res64 cpu",
    ),
    (
        "7.3, 64-bit time only",
        "x86",
        "clock64 cpu res64",
        Linked,
        "clock64 clock64 clock64 res64 cpu",
    ),
    (
        "QEMU",
        "x86",
        "clock day time res clock64 cpu",
        Qemu,
        "clock64 clock64 clock64 res moved",
    ),
    ("time alone", "x86", "time", Linked, "- - - - -"),
    (
        "3.7",
        "aarch64",
        "clock day res",
        Linked,
        "clock day clock res -",
    ),
    (
        "6.12",
        "aarch64",
        "clock day res random",
        Linked,
        "clock day clock res -",
    ),
    (
        "Android",
        "aarch64",
        "clock day res time",
        Linked,
        "time day clock res -",
    ),
    (
        "elfuse",
        "aarch64",
        "clock day res",
        Unversioned,
        "clock day clock res -",
    ),
    (
        "QEMU",
        "aarch64",
        "clock day res",
        Qemu,
        "clock day clock res -",
    ),
    ("4.1", "arm", OLD, Linked, "clock clock clock - -"),
    ("5.5", "arm", ARM_5, Linked, "clock64 clock64 clock64 res -"),
    (
        "7.0",
        "arm",
        ARM_7,
        Linked,
        "clock64 clock64 clock64 res64 -",
    ),
    (
        "7.3, 64-bit time only",
        "arm",
        "clock64 res64",
        Linked,
        "clock64 clock64 clock64 res64 -",
    ),
    (
        "Android",
        "arm",
        "clock day time",
        Linked,
        "clock clock clock - -",
    ),
    (
        "arm64 5.3",
        "arm",
        ARM_5,
        Thumb,
        "clock64 clock64 clock64 res -",
    ),
    (
        "arm64 7.0",
        "arm",
        ARM_7,
        Thumb,
        "clock64 clock64 clock64 res64 -",
    ),
    ("QEMU", "arm", ARM_5, Qemu, "clock64 clock64 clock64 res -"),
    (
        "5.7",
        "riscv64",
        "clock day res cpu",
        Linked,
        "clock day clock res cpu",
    ),
    (
        "6.16",
        "riscv64",
        "clock day res cpu random",
        GnuHash,
        "clock day clock res cpu",
    ),
    (
        "QEMU",
        "riscv64",
        "clock day res cpu",
        Qemu,
        "clock day clock res cpu",
    ),
    (
        "4.4",
        "s390x",
        "clock day res",
        Linked,
        "clock day clock res -",
    ),
    (
        "6.12",
        "s390x",
        "clock day res cpu random",
        Linked,
        "clock day clock res cpu",
    ),
    (
        "QEMU",
        "s390x",
        "clock day res cpu",
        Qemu,
        "clock day clock res cpu",
    ),
    (
        "5.19",
        "loongarch64",
        "clock day res cpu",
        Linked,
        "clock day clock res cpu",
    ),
    (
        "6.15",
        "loongarch64",
        "clock day res cpu random",
        GnuHash,
        "clock day clock res cpu",
    ),
    (
        "QEMU",
        "loongarch64",
        "clock day res cpu",
        Qemu,
        "clock day clock res cpu",
    ),
    (
        "2.6.15",
        "powerpc64",
        "clock day res cpu",
        Linked,
        "clock day clock res cpu",
    ),
    (
        "6.12",
        "powerpc64",
        "clock day res time cpu random",
        Linked,
        "time day clock res cpu",
    ),
    (
        "QEMU",
        "powerpc64",
        "clock day res time cpu",
        Qemu,
        "time day clock res cpu",
    ),
    ("4.1", "arm", OLD, NoTimer(OLD), NO_TIMER),
    ("5.5 to 5.7", "arm", ARM_5, NoTimer(OLD), NO_TIMER),
    ("5.8", "arm", ARM_5, NoTimer("clock day clock64"), NO_TIMER),
    ("7.0", "arm", ARM_7, NoTimer(ARM_7), NO_TIMER),
    (
        "7.3, 64-bit time only",
        "arm",
        "clock64 res64",
        NoTimer(ARM_7),
        NO_TIMER,
    ),
    (
        "Android",
        "arm",
        "clock day res clock64 time",
        NoTimer(OLD),
        NO_TIMER,
    ),
    // On other architectures a blank name costs that function alone.
    (
        "any",
        "x86_64",
        "clock day time cpu res",
        NoTimer("day"),
        "time - clock res cpu",
    ),
    (
        "any",
        "aarch64",
        "clock day res",
        NoTimer("clock"),
        "- day - res -",
    ),
];

/// Returns whether the names of an architecture's symbols begin with `__kernel_`.
fn has_kernel_prefix(abi: &Abi) -> bool {
    ["aarch64", "s390x", "powerpc64"].contains(&abi.name)
}

fn abi(name: &str) -> &'static Abi {
    ALL.iter().find(|abi| abi.name == name).unwrap()
}

/// Returns the full form of a short name, for an architecture.
fn full_name(abi: &Abi, name: &'static str) -> &'static str {
    let row = NAMES.iter().find(|row| row.0 == name);
    row.map(|row| if has_kernel_prefix(abi) { row.2 } else { row.1 })
        .expect("a short name")
}

/// Describes an image with these functions.
fn image(abi: &Abi, functions: &[&'static str], how: As) -> Spec<'static> {
    let spec = Spec::of(abi, functions.iter().copied());
    let mut symbols = vec![Sym::version(abi.version)];
    for function in spec.symbols {
        let is_blanked = |blank: &'static str| full_name(abi, blank) == function.name;
        let blank = matches!(how, NoTimer(blanked) if blanked.split(' ').any(is_blanked));
        symbols.push(Sym { blank, ..function });
        if abi.name == "x86_64" {
            // The crate ignores the unprefixed aliases.
            let name = function.name.trim_start_matches("__vdso_");
            symbols.push(Sym {
                name,
                bind: WEAK,
                value: Value::Alias,
                ..function
            });
        }
    }
    if abi.name == "x86" {
        symbols.extend([
            Sym::version("LINUX_2.5"),
            Sym::func("__kernel_vsyscall", "LINUX_2.5"),
        ]);
    }
    let p_vaddr = match how {
        Prelinked if abi.class == 1 => 0xffff_e000,
        Prelinked => PRELINKED,
        Qemu => 0x4080_0000,
        _ => 0,
    };
    Spec {
        symbols,
        sysv_hash: abi.name != "aarch64" && !matches!(how, GnuHash),
        gnu_hash: abi.name != "arm",
        versions: !matches!(how, Unversioned),
        p_vaddr,
        relocated: matches!(how, Qemu),
        thumb: matches!(how, Thumb),
        ..spec
    }
}

/// Returns the symbol of each function, or the reason why there is none. Fails unless the symbol's
/// version and address are the described ones.
fn answers(spec: &Spec<'_>) -> Vec<String> {
    let built = spec.build();
    let image = promises::keep(&built.bytes).unwrap();
    let answer = |(_, route)| match route {
        Route::Vdso {
            symbol,
            version,
            address,
            ..
        } => {
            let described = built
                .callable()
                .find(|described| described.name == symbol)
                .unwrap();
            assert_eq!(version, described.version_in(spec), "{symbol}");
            assert_eq!(address, described.st_value() as usize, "{symbol}");
            symbol.to_owned()
        }
        Route::Syscall { reason, .. } => format!("{reason:?}"),
        other => panic!("{other:?}"),
    };
    Routes::of_image(&image)
        .unwrap()
        .functions()
        .map(answer)
        .collect()
}

/// Returns whether programs of this byte order call libc instead of the vDSO of an architecture.
fn has_descriptors(abi: &Abi) -> bool {
    abi.name == "powerpc64" && cfg!(target_endian = "big")
}

/// Returns every flavour: its name, image and answers.
fn flavours() -> impl Iterator<Item = (String, Spec<'static>, Vec<&'static str>)> {
    let flavours = FLAVOURS
        .iter()
        .filter(|flavour| !has_descriptors(abi(flavour.1)));
    flavours.map(|(kernel, arch, names, how, answers)| {
        let abi = abi(arch);
        let full =
            |names: &'static str| names.split(' ').map(|name| full_name(abi, name)).collect();
        let names: Vec<_> = full(names);
        (
            format!("{arch}, {kernel}"),
            image(abi, &names, *how),
            full(answers),
        )
    })
}

#[test]
fn every_flavour_of_kernel_answers_with_its_best_symbols() {
    for (flavour, spec, expected) in flavours() {
        assert_eq!(answers(&spec), expected[..], "{flavour}");
        // Without version tables the name is enough.
        assert_eq!(
            answers(&Spec {
                versions: false,
                ..spec
            }),
            expected[..],
            "{flavour}"
        );
    }
}

/// Expects routes everywhere but on big-endian powerpc64, which calls libc.
#[test]
fn an_image_has_routes_unless_its_functions_have_descriptors() {
    for abi in ALL {
        let spec = image(abi, &["clock"].map(|name| full_name(abi, name)), Linked);
        let built = spec.build();
        let has_routes = Routes::of_image(&promises::keep(&built.bytes).unwrap()).is_some();
        assert_eq!(has_routes, !has_descriptors(abi), "{}", abi.name);
    }
}

#[test]
fn a_symbol_of_another_version_is_not_used() {
    for (flavour, mut spec, _) in flavours().filter(|(_, spec, _)| spec.versions) {
        for symbol in &mut spec.symbols {
            symbol.blank = false;
            symbol.version = Some("LINUX_2.6.3");
        }
        assert_eq!(
            answers(&Spec { p_vaddr: 0, ..spec }),
            ["NoSymbol"; 5],
            "{flavour}"
        );
    }
}

#[test]
fn every_symbol_fails_alone() {
    for abi in ALL.iter().filter(|abi| !has_descriptors(abi)) {
        let all: Vec<_> = names(abi).into_iter().collect();
        let full = answers(&image(abi, &all, Linked));
        for removed in &all {
            let rest: Vec<_> = all.iter().copied().filter(|name| name != removed).collect();
            let now = answers(&image(abi, &rest, Linked));
            for ((now, before), (_, function)) in now.iter().zip(&full).zip(abi.functions()) {
                let next = function
                    .candidates
                    .iter()
                    .map(|row| row.name)
                    .find(|name| name != removed);
                let expected = if before == removed {
                    next.unwrap_or("NoSymbol")
                } else {
                    before
                };
                assert_eq!(now, expected, "{} without {removed}", abi.name);
            }
        }
    }
}
