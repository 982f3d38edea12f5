//! The promise: `Vdso::locate` finds the image that the kernel mapped and every function in it.
//!
//! The auxiliary vector, /proc/self/maps and goblin say what is right.

#![allow(unsafe_code, reason = "the mapped image is read, and libc is asked")]

use std::collections::BTreeSet;

use goblin::elf::program_header::PT_LOAD;
use goblin::elf::section_header::SHN_ABS;
use goblin::elf::sym::{STB_GLOBAL, STB_WEAK, STT_FUNC, STT_NOTYPE, st_bind, st_type};
use goblin::elf::{Elf, Sym};
use test_support::maps::{self, Mapping};
use test_support::{FUNCTIONS, PATHS, has_proc, not_run, oracle, rseq};
use vdso_time::elf::SymbolKind;
use vdso_time::vdso::{LocateError, Vdso};
use vdso_time::{ClockId, FallbackReason, Route, arch};

/// The vDSO, which must be there if the auxiliary vector says so.
fn vdso() -> Option<Vdso<'static>> {
    let found = Vdso::locate();
    if oracle::sysinfo_ehdr() != 0 {
        return Some(found.expect("the auxiliary vector has AT_SYSINFO_EHDR"));
    }
    // Under valgrind the kernel still has the address of the image that is unmapped.
    assert!(matches!(found, Err(LocateError::Absent | LocateError::Unmapped)), "{found:?}");
    not_run(format!("this process has no vDSO: {found:?}"));
    None
}

/// The mapping around an address.
fn mapping(address: usize) -> Mapping {
    let all = maps::all("self").unwrap().into_iter();
    all.into_iter().find(|mapping| mapping.range.contains(&address)).expect("no mapping has this address")
}

/// A symbol: name, version, value, size, whether it is a function, whether it is weak.
type Row = (Vec<u8>, Option<String>, u64, u64, bool, bool);

/// The symbols that can be called, by goblin. It has versions only where the section headers are
/// mapped.
fn expected(elf: &Elf<'_>) -> BTreeSet<Row> {
    let row = |(index, symbol): (usize, Sym)| {
        let (kind, bind) = (st_type(symbol.st_info), st_bind(symbol.st_info));
        let callable = [STT_FUNC, STT_NOTYPE].contains(&kind)
            && [STB_GLOBAL, STB_WEAK].contains(&bind)
            && ![0, SHN_ABS as usize].contains(&symbol.st_shndx);
        let name = elf.dynstrtab.get_at(symbol.st_name).unwrap().as_bytes().to_vec();
        let row =
            (name, version(elf, index), symbol.st_value, symbol.st_size, kind == STT_FUNC, bind == STB_WEAK);
        callable.then_some(row)
    };
    elf.dynsyms.iter().enumerate().filter_map(row).collect()
}

fn version(elf: &Elf<'_>, symbol: usize) -> Option<String> {
    let index = elf.versym.as_ref()?.get_at(symbol)?.version();
    let definitions = elf.verdef.as_ref()?;
    let definition =
        definitions.iter().find(|definition| definition.vd_ndx == index && definition.vd_flags & 1 == 0)?;
    let name = definition.iter().next()?.vda_name;
    elf.dynstrtab.get_at(name).map(str::to_owned)
}

/// The bytes of the image's mapping, which go on to the end of its last page.
fn mapped(vdso: &Vdso<'_>) -> Vec<u8> {
    let base = vdso.base();
    let len = mapping(base.addr()).range.end - base.addr();
    // SAFETY: the kernel says that these bytes are mapped, and nobody writes to them.
    unsafe { std::slice::from_raw_parts(base, len) }.to_vec()
}

/// The distance of a symbol's value from its address: 0 where the loader, QEMU's, has added it.
fn bias(elf: &Elf<'_>, vdso: &Vdso<'_>) -> u64 {
    let load = elf.program_headers.iter().find(|header| header.p_type == PT_LOAD).unwrap();
    (vdso.base().addr() as u64).wrapping_add(load.p_offset).wrapping_sub(load.p_vaddr)
}

#[test]
fn the_image_is_where_the_kernel_mapped_it() {
    if !has_proc() {
        return;
    }
    let Some(vdso) = vdso() else { return };
    assert_eq!(vdso.base().addr(), oracle::sysinfo_ehdr());
    let Mapping { range, name } = mapping(vdso.base().addr());
    assert_eq!(range.start, vdso.base().addr());
    assert!(vdso.base().addr() + vdso.size() <= range.end, "{vdso:?} is larger than {range:x?}");
    assert!(["[vdso]", ""].contains(&&*name), "{vdso:?} is {name}"); // gVisor's has no name
    assert!(vdso.contains(range.start) && vdso.contains(range.start + vdso.size() - 1));
    assert!(!vdso.contains(range.start - 1) && !vdso.contains(range.start + vdso.size()));
    // SAFETY: the vDSO is mapped there, and stays.
    let again = unsafe { Vdso::from_ptr(vdso.base()) }.unwrap();
    assert_eq!((again.base(), again.size()), (vdso.base(), vdso.size()));
}

#[test]
fn the_symbols_are_those_that_goblin_finds() {
    if !has_proc() {
        return;
    }
    let Some(vdso) = vdso() else { return };
    let bytes = mapped(&vdso);
    let elf = Elf::parse(&bytes).unwrap();
    if elf.versym.is_none() {
        not_run("the versions: the section headers, where goblin looks for them, are not mapped");
    }
    let ours = vdso.symbols().map(|symbol| {
        let version = symbol.version().filter(|_| elf.versym.is_some());
        let version = version.map(|version| version.to_str().unwrap().to_owned());
        let function = symbol.kind() == SymbolKind::Func;
        (
            symbol.name().to_bytes().to_vec(),
            version,
            symbol.value(),
            symbol.size(),
            function,
            symbol.is_weak(),
        )
    });
    let (ours, goblins): (BTreeSet<Row>, _) = (ours.collect(), expected(&elf));
    assert!(!goblins.is_empty());
    assert_eq!(ours, goblins);

    let bias = bias(&elf, &vdso);
    let names: BTreeSet<String> =
        goblins.iter().map(|row| String::from_utf8(row.0.clone()).unwrap()).collect();
    for (name, version, value, ..) in goblins {
        let name = &*String::from_utf8(name).unwrap();
        let address = Some(value.wrapping_add(bias) as usize).filter(|_| !name.is_empty());
        let found = |version| vdso.symbol_address(name, version).map(<*const ()>::addr);
        assert_eq!(found(version.as_deref()), address, "{name} {version:?}");
        assert_eq!(found(None), address, "{name}");
        // Neither less nor more than the name will do.
        let cut = &name[..name.len().saturating_sub(1)];
        assert_eq!(vdso.symbol_address(cut, None).is_some(), names.contains(cut) && !cut.is_empty(), "{cut}");
        assert_eq!(vdso.symbol_address(&format!("{name}\0"), None), None, "{name}");
        if version.is_some() {
            assert_eq!(found(Some("LINUX_9.9")), None, "{name}");
            assert_eq!(found(Some("")), None, "{name}");
        }
    }
    assert_eq!(vdso.symbol_address("__vdso_no_such_thing", None), None);
    assert_eq!(vdso.symbol_address("", None), None);
}

/// Fails if a call sets `errno`.
fn leaves_errno_alone<T>(what: &str, call: impl FnOnce() -> T) {
    const MARK: i32 = 4242;
    let errno = oracle::errno();
    // SAFETY: it is this thread's own.
    unsafe { errno.write(MARK) };
    call();
    // SAFETY: the same.
    let found = unsafe { errno.read() };
    assert_eq!(found, MARK, "{what} sets errno");
}

#[test]
fn errno_is_left_alone() {
    leaves_errno_alone("locate", Vdso::locate);
    leaves_errno_alone("routes", vdso_time::routes);
    let clocks = [ClockId::MONOTONIC, ClockId::THREAD_CPUTIME, ClockId::from_raw(-1), ClockId::from_raw(99)];
    for (path, clock) in PATHS.iter().flat_map(|path| clocks.map(|clock| (path, clock))) {
        for function in &FUNCTIONS {
            leaves_errno_alone(function.name, || (function.read)(path, clock));
        }
    }
}

/// Fails unless a route leads to a candidate that goblin has at this address, or to this system
/// call.
fn check_route(
    what: &str,
    route: Route,
    candidates: &[arch::Candidate],
    image: Option<&(BTreeSet<Row>, u64)>,
    call: u32,
) {
    let rows = image.map(|(rows, _)| rows);
    match route {
        Route::Vdso { symbol, version, address, .. } => {
            assert!(candidates.iter().any(|candidate| candidate.name == symbol), "{what}: {route}");
            let (rows, bias) = image.expect("there is no vDSO");
            let same = |row: &Row| {
                let versioned = row.1.is_none() || row.1.as_deref() == version;
                row.0 == symbol.as_bytes() && versioned && row.2.wrapping_add(*bias) as usize == address
            };
            assert!(rows.iter().any(same), "{what}: {route}");
        }
        Route::Syscall { number, reason, .. } => {
            assert_eq!(number, call, "{what}: {route}");
            assert_eq!(matches!(reason, FallbackReason::NoVdso(_)), rows.is_none(), "{what}: {route}");
            let named = |row: &Row| row.0.ends_with(format!("_{what}").as_bytes());
            let there = rows.is_some_and(|rows| rows.iter().any(named));
            assert!(reason != FallbackReason::NoSymbol || !there, "{what}: {route}");
        }
        Route::Rseq => assert!(what == "getcpu" && rseq::is_registered(), "{what}: {route}"),
        _ => assert!(arch::NATIVE.is_none(), "{what}: {route}"),
    }
}

#[test]
fn a_route_names_what_answers() {
    if !has_proc() {
        return;
    }
    let image = vdso().map(|vdso| {
        let bytes = mapped(&vdso);
        let elf = Elf::parse(&bytes).unwrap();
        (expected(&elf), bias(&elf, &vdso))
    });
    let Some(abi) = arch::NATIVE else {
        assert_eq!(vdso_time::routes().time, Route::Libc);
        return;
    };
    let sys = |number| u32::try_from(number).unwrap();
    let clock = oracle::number(oracle::CLOCK_GETTIME);
    let is_wide = cfg!(target_pointer_width = "32") && clock == 403;
    let calls = [
        ("time", clock),
        ("gettimeofday", if is_wide { clock } else { sys(libc::SYS_gettimeofday) }),
        ("clock_gettime", clock),
        ("clock_getres", oracle::number(oracle::CLOCK_GETRES)),
        ("getcpu", sys(libc::SYS_getcpu)),
    ];
    let functions = vdso_time::routes().functions().into_iter().zip(abi.functions());
    for (((what, route), (_, function)), (name, call)) in functions.zip(calls) {
        assert_eq!(what, name);
        check_route(what, route, function.candidates, image.as_ref(), call);
    }
}
