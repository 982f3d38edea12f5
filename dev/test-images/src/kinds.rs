//! One image of every kind that a parser meets, and the symbols that it must find in each.

use std::ffi::CStr;

use vdso_time::elf::{Image, Symbol};

use crate::{
    ABS, Built, LOCAL, NOTYPE, OBJECT, PT_ARM_EXIDX, PT_DYNAMIC, PT_LOAD, PT_PHDR, Spec, Sym,
    UNDEF, Value, WEAK, promises,
};

/// The load address of the images of x86_64 kernels before 3.14, gVisor and WSL1.
pub const PRELINKED: u64 = 0xffff_ffff_ff70_0000;

const V: &str = "LINUX_2.6";
const V39: &str = "LINUX_2.6.39";

/// Returns a function and its unprefixed weak alias, as on x86_64.
pub fn aliased(name: &'static str) -> [Sym<'static>; 2] {
    let alias = Sym::func(name.trim_start_matches("__vdso_"), V);
    [
        Sym::func(name, V),
        Sym {
            bind: WEAK,
            value: Value::Alias,
            ..alias
        },
    ]
}

/// Describes an image of arm: 32 bits, `DT_HASH` only.
pub fn arm() -> Spec<'static> {
    let names = [
        "__vdso_clock_gettime",
        "__vdso_gettimeofday",
        "__vdso_clock_gettime64",
    ];
    let mut symbols = vec![Sym::version(V)];
    symbols.extend(names.map(|name| Sym::func(name, V)));
    let segments = vec![PT_ARM_EXIDX, PT_LOAD, PT_DYNAMIC];
    Spec {
        wide: false,
        machine: 40,
        symbols,
        gnu_hash: false,
        segments,
        ..Spec::default()
    }
}

/// Describes an image of x86_64: 64 bits, both hash tables.
pub fn x86_64() -> Spec<'static> {
    let names = ["__vdso_clock_gettime", "__vdso_time", "__vdso_getcpu"];
    let mut symbols = vec![Sym::version(V)];
    symbols.extend(names.into_iter().flat_map(aliased));
    Spec {
        symbols,
        ..Spec::default()
    }
}

/// Describes an image of aarch64 since kernel 6.11: 64 bits, `DT_GNU_HASH` only.
pub fn aarch64() -> Spec<'static> {
    let names = [
        "__kernel_clock_gettime",
        "__kernel_gettimeofday",
        "__kernel_clock_getres",
    ];
    let mut symbols = vec![
        Sym::version(V39),
        Sym {
            kind: NOTYPE,
            ..Sym::func("__kernel_rt_sigreturn", V39)
        },
    ];
    symbols.extend(names.map(|name| Sym::func(name, V39)));
    Spec {
        machine: 183,
        symbols,
        sysv_hash: false,
        ..Spec::default()
    }
}

/// Describes an image of i386: 32 bits, two versions.
pub fn i386() -> Spec<'static> {
    let of = |name, version| Sym::func(name, version);
    let symbols = vec![
        Sym::version(V),
        of("__vdso_clock_gettime64", V),
        of("__vdso_getcpu", V),
        Sym::version("LINUX_2.5"),
        of("__kernel_vsyscall", "LINUX_2.5"),
    ];
    Spec {
        wide: false,
        machine: 3,
        symbols,
        ..Spec::default()
    }
}

/// Describes an image of S/390: 64 bits, `DT_HASH` of 64-bit words.
pub fn s390() -> Spec<'static> {
    Spec {
        machine: 22,
        sysv_hash: true,
        gnu_hash: false,
        ..aarch64()
    }
}

/// Returns every kind with its name.
#[allow(clippy::too_many_lines, reason = "it is a table")]
pub fn kinds() -> Vec<(&'static str, Spec<'static>)> {
    let sections = [Sym {
        bind: LOCAL,
        blank: true,
        version: None,
        ..Sym::default()
    }; 2];
    let qemu = |spec: Spec<'static>, p_vaddr| {
        let segments = vec![PT_PHDR, PT_LOAD, PT_DYNAMIC];
        Spec {
            p_vaddr,
            relocated: true,
            sysv_hash: true,
            gnu_hash: true,
            segments,
            ..spec
        }
    };
    let mut riscv = Spec {
        machine: 243,
        ..aarch64()
    };
    riscv.symbols.extend(sections);
    let mut blanked = arm();
    for symbol in &mut blanked.symbols[1..3] {
        symbol.blank = true;
    }
    let mut odd = x86_64();
    odd.symbols.extend([
        Sym {
            shndx: UNDEF,
            ..Sym::func("undefined", V)
        },
        Sym {
            shndx: ABS,
            value: Value::Exactly(0x40),
            ..Sym::func("absolute", V)
        },
        Sym {
            bind: LOCAL,
            ..Sym::func("local", V)
        },
        Sym {
            kind: OBJECT,
            ..Sym::func("object", V)
        },
        Sym {
            value: Value::Exactly(1 << 40),
            ..Sym::func("outside", V)
        },
        Sym {
            version: None,
            ..Sym::func("unversioned", V)
        },
        Sym {
            size: 0,
            ..Sym::func("no_size", V)
        },
    ]);
    vec![
        ("both hash tables", x86_64()),
        ("SysV only", arm()),
        ("GNU only", aarch64()),
        (
            "neither",
            Spec {
                sysv_hash: false,
                ..aarch64()
            },
        ),
        (
            "neither, and no versions",
            Spec {
                sysv_hash: false,
                versions: false,
                ..aarch64()
            },
        ),
        (
            "neither, 32 bits",
            Spec {
                sysv_hash: false,
                ..arm()
            },
        ),
        (
            "no versions",
            Spec {
                versions: false,
                ..x86_64()
            },
        ),
        ("local symbols first", riscv),
        ("two versions", i386()),
        (
            "Thumb",
            Spec {
                thumb: true,
                ..arm()
            },
        ),
        ("blanked", blanked),
        (
            "prelinked",
            Spec {
                p_vaddr: PRELINKED,
                gnu_hash: false,
                ..x86_64()
            },
        ),
        (
            "prelinked, 32 bits",
            Spec {
                p_vaddr: PRELINKED & 0xffff_ffff,
                ..i386()
            },
        ),
        ("relocated", qemu(aarch64(), 0x7f12_3456_7000)),
        (
            "relocated, 32 bits",
            qemu(
                Spec {
                    thumb: true,
                    ..arm()
                },
                0x4080_0000,
            ),
        ),
        ("relocated, S/390", qemu(s390(), 0x7f12_3456_7000)),
        ("S/390: 64-bit words in DT_HASH", s390()),
        (
            "both hash tables, 32 bits",
            Spec {
                machine: 20,
                gnu_hash: true,
                ..arm()
            },
        ),
        (
            "x32: 32 bits of x86_64",
            Spec {
                wide: false,
                ..x86_64()
            },
        ),
        (
            "segment not at the start",
            Spec {
                p_offset: 0x240,
                p_vaddr: 0x1_0240,
                ..x86_64()
            },
        ),
        (
            "dynamic segment first",
            Spec {
                segments: vec![PT_DYNAMIC, 0x6474_e550, PT_LOAD, 0],
                ..x86_64()
            },
        ),
        ("symbols that cannot be called", odd),
    ]
}

/// A symbol: its name, its version, its value and its size.
pub type Row = (String, Option<String>, u64, u64);

/// Returns the symbols that can be called, from the description.
pub fn described(spec: &Spec<'_>, image: &Built<'_>) -> Vec<Row> {
    let inside =
        |value: u64| value.wrapping_sub(spec.p_vaddr) < (image.bytes.len() - spec.p_offset) as u64;
    let mut rows = Vec::new();
    for symbol in image.callable() {
        let value = symbol.st_value();
        if inside(value) {
            let name = symbol.st_name().into();
            let version = symbol.version_in(spec).map(str::to_owned);
            rows.push((name, version, value, symbol.size));
        }
    }
    rows
}

/// Returns these symbols as the parser sees them.
pub fn seen<'a>(symbols: impl Iterator<Item = Symbol<'a>>) -> Vec<Row> {
    let text = |string: &CStr| string.to_str().unwrap().to_owned();
    let rows = symbols.map(|symbol| {
        let name = text(symbol.name());
        let version = symbol.version().map(text);
        (name, version, symbol.value(), symbol.size())
    });
    rows.collect()
}

/// Fails unless the parser finds what the description says. Returns how many symbols it has.
#[track_caller]
pub fn assert_described(kind: &str, spec: &Spec<'_>) -> usize {
    let built = spec.build();
    let image =
        promises::keep(&built.bytes).unwrap_or_else(|| panic!("{:?}", Image::parse(&built.bytes)));
    assert_eq!(seen(image.symbols()), described(spec, &built), "{kind}");
    assert_eq!(
        (image.machine(), image.class()),
        (spec.machine, if spec.wide { 2 } else { 1 }),
        "{kind}"
    );
    assert_eq!(image.load_address(), spec.p_vaddr, "{kind}");
    let text = format!("{image:?}");
    let has_extent = text.contains(&format!(
        "{} bytes at {:p}",
        built.bytes.len(),
        &raw const built.bytes[0]
    ));
    assert!(has_extent && text.len() < 200, "{kind}: {text}");
    assert_eq!(Image::extent(&built.bytes), Ok(built.bytes.len()), "{kind}");
    image.symbols().count()
}
