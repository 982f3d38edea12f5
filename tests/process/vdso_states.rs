//! Processes whose vDSO is not where the auxiliary vector says, or of which the vector says nothing true: each is a child, and
//! every function of it answers rightly.

#![allow(unsafe_code, reason = "mappings are taken away, and the environment is changed")]

use test_support::vector;

use std::ffi::c_void;
use std::fs;
use std::ptr;

use test_support::{PATHS, answers, child, has_proc, not_run, not_run_here, oracle};
use vdso_time::elf::Image;
use vdso_time::vdso::{LocateError, ParseError, Vdso};
use vdso_time::{FallbackReason, Route, routes};

/// Fails unless the vDSO is not found, for this reason, and the kernel answers everything.
#[track_caller]
fn check(state: &str, why: LocateError) {
    assert_eq!(Vdso::locate().err(), Some(why), "{state}");
    for path in &PATHS {
        assert_eq!(answers::wrong(path), None, "{state}: {}", path.name);
    }
    let found = routes();
    for route in [found.time, found.gettimeofday, found.clock_gettime, found.clock_getres, found.getcpu] {
        match route {
            Route::Syscall { reason, .. } => assert_eq!(reason, FallbackReason::NoVdso(why), "{state}"),
            other => assert_eq!(other, Route::Libc, "{state}"),
        }
    }
}

fn page_size() -> usize {
    // SAFETY: it has no precondition.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Two new pages.
fn two_pages(protection: i32) -> *mut c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses a place where nothing is.
    let pages = unsafe { libc::mmap(ptr::null_mut(), 2 * page_size(), protection, flags, -1, 0) };
    assert_ne!(pages, libc::MAP_FAILED);
    pages
}

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

fn unmap(start: *mut c_void, size: usize) {
    // SAFETY: the caller's pages are not used any more.
    assert_eq!(unsafe { libc::munmap(start, size) }, 0);
}

/// An address, made for the state's child in that.
type Make = fn() -> Option<usize>;

const STATES: [(&str, Make, LocateError); 8] = [
    ("no entry", || None, LocateError::Absent),
    ("0", || Some(0), LocateError::Absent),
    (
        "an unmapped page",
        || {
            let pages = two_pages(READ_WRITE);
            unmap(pages, 2 * page_size());
            Some(pages.addr())
        },
        LocateError::Unmapped,
    ),
    ("a page that cannot be read", || Some(two_pages(libc::PROT_NONE).addr()), LocateError::Unmapped),
    ("the page of null pointers", || Some(8), LocateError::Unmapped),
    ("the last page of all", || Some(usize::MAX & !0xfff), LocateError::Unmapped),
    ("the last byte of all", || Some(usize::MAX), LocateError::Unmapped),
    ("zeros", || Some(two_pages(READ_WRITE).expose_provenance()), LocateError::Malformed(ParseError::NotElf)),
];

#[test]
fn the_auxiliary_vector_says_what_is_not_true() {
    if !has_proc() {
        return;
    }
    for (state, make, why) in STATES {
        child::forked(|| match vector::say(make(), cfg!(feature = "libc")) {
            Ok(()) => check(state, why),
            Err(error) => not_run_here("auxv", format!("the auxiliary vector: {error}")),
        });
    }
}

#[cfg(target_arch = "x86")]
std::arch::global_asm!(".globl vdso_time_test_call", "vdso_time_test_call:", "int 0x80", "ret");

/// On i386 libc's system calls go through the vDSO, by an address that each thread has: from now on, not this one's.
#[cfg(target_arch = "x86")]
fn leave_the_vdso() {
    unsafe extern "C" {
        fn vdso_time_test_call();
    }
    let call = vdso_time_test_call as *const () as usize;
    // SAFETY: it is where libc has that address (`sysinfo` of its `tcbhead_t`), and this code does what the other did.
    unsafe { std::arch::asm!("mov gs:[0x10], {}", in(reg) call) };
}

#[cfg(not(target_arch = "x86"))]
fn leave_the_vdso() {}

/// The mapping of the vDSO; `None`, after a line that says so, if there is none.
fn vdso() -> Option<(*mut c_void, usize)> {
    let start = oracle::sysinfo_ehdr();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.starts_with(&format!("{start:x}-")));
    let Some((_, end)) = line.and_then(|line| line.split_whitespace().next()?.split_once('-')) else {
        not_run("this process has no vDSO");
        return None;
    };
    let size = usize::from_str_radix(end, 16).unwrap() - start;
    Some((ptr::with_exposed_provenance_mut(start), size))
}

/// An image of two pages, or more, of which but the first is there. QEMU's have one.
#[test]
fn the_auxiliary_vector_says_where_an_image_is_cut_short() {
    if !has_proc() {
        return;
    }
    child::forked(|| {
        let Some((start, _)) = vdso() else { return };
        let place = two_pages(READ_WRITE);
        // SAFETY: an image has one page at least, and so has the place.
        unsafe { ptr::copy_nonoverlapping(start.cast::<u8>(), place.cast(), page_size()) };
        unmap(place.wrapping_byte_add(page_size()), page_size());
        // SAFETY: that page is not written to again.
        let page = unsafe { std::slice::from_raw_parts(place.cast::<u8>(), page_size()) };
        if Image::extent(page).unwrap() <= page_size() {
            return not_run("the image has one page");
        }
        match vector::say(Some(place.expose_provenance()), cfg!(feature = "libc")) {
            Ok(()) => check("an image cut short", LocateError::Unmapped),
            Err(error) => not_run_here("auxv", format!("the auxiliary vector: {error}")),
        }
    });
}

#[test]
fn the_vdso_was_unmapped_before_the_first_call() {
    if !has_proc() {
        return;
    }
    child::forked(|| {
        let Some((start, size)) = vdso() else { return };
        leave_the_vdso();
        unmap(start, size);
        check("unmapped", LocateError::Unmapped);
    });
}

#[test]
fn the_vdso_was_moved_before_the_first_call() {
    if !has_proc() {
        return;
    }
    child::forked(|| {
        let Some((start, size)) = vdso() else { return };
        let pages = two_pages(libc::PROT_NONE);
        leave_the_vdso();
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: what is there is taken away: these pages, and what the kernel put there, nobody's else.
        let moved = unsafe { libc::mremap(start, size, size, flags, pages) };
        if moved == libc::MAP_FAILED {
            return not_run_here("mremap", format!("mremap: {}", std::io::Error::last_os_error()));
        }
        check("moved", LocateError::Unmapped);
    });
}

/// Not promised, for nobody can tell what is there: but zeros are no image.
#[test]
fn something_else_was_mapped_over_the_vdso_before_the_first_call() {
    if !has_proc() {
        return;
    }
    child::forked(|| {
        let Some((start, size)) = vdso() else { return };
        leave_the_vdso();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: nobody uses the vDSO any more.
        assert_eq!(unsafe { libc::mmap(start, size, READ_WRITE, flags, -1, 0) }, start);
        check("zeros", LocateError::Malformed(ParseError::NotElf));
    });
}

/// Who looks for the auxiliary vector behind the environment finds something else after setenv(3) has moved that.
#[test]
fn the_environment_was_moved_before_the_first_call() {
    child::forked(|| {
        for number in 0..1000 {
            // SAFETY: this process has one thread.
            unsafe { std::env::set_var(format!("VDSO_TIME_TEST_{number}"), "x".repeat(100)) };
        }
        assert_eq!(Vdso::locate().is_ok(), oracle::sysinfo_ehdr() != 0);
        for path in &PATHS {
            assert_eq!(answers::wrong(path), None, "{}", path.name);
        }
        let is_found = |route| !matches!(route, Route::Syscall { reason: FallbackReason::NoVdso(_), .. });
        assert_eq!(is_found(routes().clock_gettime), Vdso::locate().is_ok(), "{}", routes());
    });
}
