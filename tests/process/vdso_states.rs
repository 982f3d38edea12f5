//! Processes whose vDSO is not where the auxiliary vector says. Every function is right in each.

#![allow(unsafe_code, reason = "mappings are removed, and init gets wrong addresses")]

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use test_images::Spec;
use test_support::functions::assert_all_right;
use test_support::nix::sys::mman::{MRemapFlags, mremap, munmap};
use test_support::{PATHS, Pages, child, has_proc, maps, not_run, not_run_here, oracle, page_size};
use vdso_time::elf::ParseError;
use vdso_time::vdso::{LocateError, Vdso};
use vdso_time::{FallbackReason, Route, routes};

use super::reasons;

/// Fails unless the vDSO is not found, for this reason, and the kernel answers everything.
#[track_caller]
fn check(state: &str, why: LocateError) {
    test_support::rseq::unregister();
    assert_eq!(Vdso::locate().err(), Some(why), "{state}");
    PATHS.iter().for_each(assert_all_right);
    let is_libc = routes().time == Route::Libc;
    assert!(is_libc || reasons(&routes()) == [Some(FallbackReason::NoVdso(why)); 5], "{state}: {}", routes());
}

fn an_unmapped_page() -> usize {
    let pages = Pages::new(1);
    pages.unmap();
    pages.addr()
}

fn a_page_with(bytes: &[u8]) -> usize {
    let pages = Pages::new(1);
    pages.fill(bytes);
    pages.addr()
}

/// The first of an image's two pages.
fn an_image_cut_short() -> usize {
    let (wide, big_endian) = (usize::BITS == 64, cfg!(target_endian = "big"));
    let image = Spec { wide, big_endian, extent: 2 * page_size(), ..Spec::default() }.build();
    a_page_with(&image.bytes[..page_size()])
}

/// Makes the address that the process is told.
type Make = fn() -> usize;

const STATES: [(&str, Make, LocateError); 7] = [
    ("0", || 0, LocateError::Absent),
    ("an unmapped page", an_unmapped_page, LocateError::Unmapped),
    ("a page that cannot be read", || Pages::new(1).addr(), LocateError::Unmapped),
    ("an image cut short", an_image_cut_short, LocateError::Unmapped),
    ("the page of null pointers", || 8, LocateError::Unmapped),
    ("the last page of all", || usize::MAX & !0xfff, LocateError::Unmapped),
    ("zeros", || a_page_with(&[0]), LocateError::Malformed(ParseError::NotElf)),
];

#[test]
fn a_wrong_address_is_noticed() {
    for (state, make, why) in STATES {
        child::forked(|| {
            child::set_vdso(make());
            check(state, why);
        });
    }
}

#[cfg(target_arch = "x86")]
std::arch::global_asm!(".globl vdso_time_test_call", "vdso_time_test_call:", "int 0x80", "ret");

/// On i386 libc makes system calls by an address in the vDSO that each thread has. Replaces this
/// thread's.
#[cfg(target_arch = "x86")]
fn leave_the_vdso() {
    unsafe extern "C" {
        fn vdso_time_test_call();
    }
    let call = vdso_time_test_call as *const () as usize;
    // SAFETY: libc has the address there (`sysinfo` of its `tcbhead_t`), and this code does the
    // same.
    unsafe { std::arch::asm!("mov gs:[0x10], {}", in(reg) call) };
}

#[cfg(not(target_arch = "x86"))]
fn leave_the_vdso() {}

/// Does this in a child with the mapping of its vDSO, if it has one.
#[track_caller]
fn with_vdso(work: fn(NonNull<c_void>, usize)) {
    if !has_proc() {
        return;
    }
    child::forked(|| {
        let start = oracle::sysinfo_ehdr();
        let mut all = maps::all("self").unwrap().into_iter();
        let Some(mapping) = all.find(|mapping| mapping.range.start == start) else {
            return not_run("this process has no vDSO");
        };
        leave_the_vdso();
        work(NonNull::new(ptr::with_exposed_provenance_mut(start)).unwrap(), mapping.range.len());
    });
}

#[test]
fn a_vdso_that_was_unmapped_or_moved_before_the_first_call_is_noticed() {
    with_vdso(|start, size| {
        // SAFETY: nothing uses the vDSO any more.
        unsafe { munmap(start, size) }.unwrap();
        check("unmapped", LocateError::Unmapped);
    });
    with_vdso(|start, size| {
        let pages = Pages::new(2);
        let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
        // SAFETY: it replaces these pages, and what the kernel put after them.
        match unsafe { mremap(start, size, size, flags, Some(pages.base)) } {
            Ok(_) => check("moved", LocateError::Unmapped),
            Err(error) => not_run_here("mremap", format!("mremap: {error}")),
        }
    });
}
