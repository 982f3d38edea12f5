//! The promise: `Vdso::locate` finds the image that the kernel mapped, by the auxiliary vector and
//! /proc/self/maps.

#![allow(unsafe_code, reason = "libc is asked")]

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
