//! The promise: `Vdso::locate` finds the image that the kernel mapped and every function in it.
//!
//! The auxiliary vector, /proc/self/maps and goblin give the expected values. `tests/images` compares
//! versions: goblin reads them only by section headers, which need not be mapped.

#![allow(unsafe_code, reason = "the mapped image is read, and libc is asked")]

use std::collections::BTreeSet;

use goblin::elf::Elf;
use goblin::elf::program_header::PT_LOAD;
use goblin::elf::section_header::SHN_ABS;
use goblin::elf::sym::{STB_GLOBAL, STB_WEAK, STT_FUNC, STT_NOTYPE};
use test_support::maps::{self, Mapping};
use test_support::{FUNCTIONS, PATHS, has_proc, not_run, oracle};
use vdso_time::ClockId;
use vdso_time::vdso::{LocateError, Vdso};

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

/// A symbol that can be called: its name, size and address.
type Row = (Vec<u8>, u64, usize);

/// Such symbols of the image, by goblin.
fn expected(vdso: &Vdso<'_>) -> BTreeSet<Row> {
    let base = vdso.base();
    let len = mapping(base.addr()).range.end - base.addr();
    // SAFETY: the kernel says that these bytes are mapped, and nobody writes to them.
    let bytes = unsafe { std::slice::from_raw_parts(base, len) };
    let elf = Elf::parse(bytes).unwrap();
    let load = elf.program_headers.iter().find(|header| header.p_type == PT_LOAD).unwrap();
    // 0 where the loader, QEMU's, has added it.
    let bias = (base.addr() as u64).wrapping_add(load.p_offset).wrapping_sub(load.p_vaddr);
    let callable = elf.dynsyms.iter().filter(|symbol| {
        [STT_FUNC, STT_NOTYPE].contains(&symbol.st_type())
            && [STB_GLOBAL, STB_WEAK].contains(&symbol.st_bind())
            && ![0, SHN_ABS as usize].contains(&symbol.st_shndx)
    });
    let row = |symbol: goblin::elf::Sym| {
        let name = elf.dynstrtab.get_at(symbol.st_name).unwrap().as_bytes().to_vec();
        (name, symbol.st_size, symbol.st_value.wrapping_add(bias) as usize)
    };
    callable.map(row).collect()
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
    let goblins = expected(&vdso);
    let row = |symbol: vdso_time::elf::Symbol<'_>| {
        (symbol.name().to_bytes().to_vec(), symbol.size(), vdso.address(&symbol).addr())
    };
    assert_eq!(vdso.symbols().map(row).collect::<BTreeSet<_>>(), goblins);
    assert!(!goblins.is_empty());
    for symbol in vdso.symbols() {
        let address = vdso.address(&symbol).addr();
        // Of two names for the same code it is either.
        let found = vdso.symbol_at(address).map(|found| vdso.address(&found).addr());
        assert_eq!(found, Some(address), "{symbol:?}");
        let [name, version] =
            [Some(symbol.name()), symbol.version()].map(|text| text.map(|text| text.to_str().unwrap()));
        let name = name.unwrap();
        let address = Some(address).filter(|_| !name.is_empty());
        for version in [version, None] {
            assert_eq!(vdso.symbol_address(name, version).map(<*const ()>::addr), address, "{symbol:?}");
        }
        assert_eq!(vdso.symbol_address(&format!("{name}\0"), None), None, "{symbol:?}");
        assert!(version.is_none() || vdso.symbol_address(name, Some("LINUX_9.9")).is_none(), "{symbol:?}");
    }
    assert_eq!(vdso.symbol_address("__vdso_no_such_thing", None), None);
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
