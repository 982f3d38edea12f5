//! First calls of processes whose vDSO is not where the auxiliary vector says, or whose sandbox
//! denies the queries that find it. Every function is right in each.

#![allow(unsafe_code, reason = "mappings are removed, and libc is called")]

use std::error::Error;
use std::ffi::{c_long, c_void};
use std::fs;
use std::ptr::{self, NonNull};

use test_images::{Part, Spec, names};
use test_support::functions::assert_all_right;
use test_support::nix::sched::{CloneFlags, unshare};
use test_support::nix::sys::mman::{MRemapFlags, mremap, munmap};
use test_support::nix::unistd::chroot;
use test_support::{PATHS, Pages, child, filter, has_proc, maps, not_run_here, oracle, page_size};
use vdso_time::__private::NATIVE;
use vdso_time::LocateError::{self, Absent, Malformed, Unchecked, Unmapped};
use vdso_time::elf::ParseError;
use vdso_time::vdso::Vdso;
use vdso_time::{FallbackReason, Route, routes};

use super::{missed_the_vdso, reasons};

/// Fails unless every answer is right, and the vDSO is found, or not for this reason, and each
/// function has its own. Setting the address afterwards changes nothing.
#[track_caller]
fn check(state: &str, missing: Option<LocateError>, expected: Option<[FallbackReason; 5]>) {
    PATHS.iter().for_each(assert_all_right);
    for address in [0, oracle::sysinfo_ehdr()] {
        assert!(!child::can_set_vdso(address), "{state}");
        assert_eq!(Vdso::locate().err(), missing, "{state}");
    }
    let is_malformed = matches!(missing, Some(Malformed(_)));
    let has_source = |why: LocateError| why.source().is_some_and(<dyn Error>::is::<ParseError>);
    assert_eq!(missing.is_some_and(has_source), is_malformed, "{state}");
    let found = routes();
    let is_right = match expected {
        Some(expected) => found.time == Route::Libc || reasons(&found) == expected.map(Some),
        None => !missed_the_vdso(&found),
    };
    assert!(is_right, "{state}: {found}");
    PATHS.iter().for_each(assert_all_right);
}

/// Says that the vDSO is there.
fn at(address: usize) -> bool {
    child::set_vdso(address);
    true
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

/// Returns a page with an image whose symbols have an impossible size.
fn a_malformed_image() -> usize {
    let spec = NATIVE.map_or(Spec::default(), |abi| Spec::of(abi, names(abi)));
    a_page_with(&spec.build().set("DT_SYMENT", 1).bytes)
}

/// Makes the kernel answer these system calls with an error.
fn deny(calls: &[c_long], error: i32) -> bool {
    filter::deny(
        &calls.iter().map(|call| *call as u32).collect::<Vec<_>>(),
        error,
    )
}

/// Returns whether the kernel has PR_GET_AUXV. QEMU's user mode does not.
fn has_get_auxv() -> bool {
    let mut vector = [0_usize; 128];
    // SAFETY: the kernel writes at most this many bytes there.
    unsafe { libc::prctl(0x4155_5856, vector.as_mut_ptr(), size_of_val(&vector), 0, 0) > 0 }
}

fn without_proc() -> bool {
    // The first user of a namespace may do what root may.
    let _ = unshare(CloneFlags::CLONE_NEWUSER);
    let changed = chroot("/dev").map_err(|error| not_run_here(format!("chroot: {error}")));
    assert!(changed.is_err() || fs::metadata("/proc").is_err());
    changed.is_ok()
}

/// Enters a state, in which a sandbox denies with this error, or says why it cannot.
type Enter = fn(i32) -> bool;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn the_vdso_is_found_or_the_reason_is_named_in_every_state() {
    const PROBE: c_long = libc::SYS_rt_sigprocmask;
    const FILE: c_long = libc::SYS_openat;
    let unless_libc = |why| {
        if cfg!(feature = "libc") {
            None
        } else {
            Some(why)
        }
    };
    let without_get_auxv = if has_get_auxv() {
        None
    } else {
        unless_libc(Absent)
    };
    let states: [(&str, Enter, Option<LocateError>); 19] = [
        ("an untouched process", |_| true, None),
        ("0", |_| at(0), Some(Absent)),
        (
            "an unmapped page",
            |_| at(an_unmapped_page()),
            Some(Unmapped),
        ),
        (
            "a page that cannot be read",
            |_| at(Pages::new(1).addr()),
            Some(Unmapped),
        ),
        ("the page of null pointers", |_| at(8), Some(Unmapped)),
        (
            "the last page of all",
            |_| at(usize::MAX & !0xfff),
            Some(Unmapped),
        ),
        (
            "zeros",
            |_| at(a_page_with(&[0])),
            Some(Malformed(ParseError::NotElf)),
        ),
        (
            "a malformed table",
            |_| at(a_malformed_image()),
            Some(Malformed(ParseError::SymbolTable)),
        ),
        ("no vDSO any more", |_| unmaps_the_vdso(), Some(Unmapped)),
        (
            "a vDSO that was moved",
            |_| moves_the_vdso(),
            Some(Unmapped),
        ),
        ("no prctl", |error| deny(&[libc::SYS_prctl], error), None),
        ("no openat", |error| deny(&[FILE], error), without_get_auxv),
        (
            "neither",
            |error| deny(&[libc::SYS_prctl, FILE], error),
            unless_libc(Absent),
        ),
        (
            "no check",
            |error| deny(&[PROBE], error),
            unless_libc(Unchecked),
        ),
        // The address is the right one, but not getauxval's.
        ("a set address", |_| at(oracle::sysinfo_ehdr()), None),
        (
            "no check of it",
            |error| at(oracle::sysinfo_ehdr()) && deny(&[PROBE], error),
            Some(Unchecked),
        ),
        // This would be unsound with getauxval's address, which is trusted (`Vdso::locate`).
        (
            "no vDSO any more, and no check of a set address",
            |error| at(oracle::sysinfo_ehdr()) && unmaps_the_vdso() && deny(&[PROBE], error),
            Some(Unchecked),
        ),
        ("no /proc", |_| without_proc(), without_get_auxv),
        (
            "no /proc and prctl",
            |error| without_proc() && deny(&[libc::SYS_prctl], error),
            unless_libc(Absent),
        ),
    ];
    let is_missing = oracle::sysinfo_ehdr() == 0;
    for (state, enter, expected) in states {
        let expected = if is_missing && matches!(expected, None | Some(Unchecked)) {
            Some(Absent)
        } else {
            expected
        };
        for error in [libc::EPERM, libc::ENOSYS] {
            child::forked(|| {
                if enter(error) {
                    check(
                        state,
                        expected,
                        expected.map(|why| [FallbackReason::NoVdso(why); 5]),
                    );
                }
            });
        }
    }
}

/// Makes the second page of each image unreadable. It has a table. A second page that has only code
/// is not read (SECURITY.md, "Limits of the promises").
#[test]
fn an_image_that_is_cut_short_is_noticed() {
    let Some(abi) = NATIVE else {
        return not_run_here("no table for this architecture");
    };
    for last in Part::ALL {
        if last == Part::Text {
            continue;
        }
        let spec = Spec::of(abi, names(abi));
        // A table of GNU's is read if there is no other.
        let sysv_hash = last != Part::GnuHash;
        let order = Part::with_last(&[last]);
        let built = Spec {
            sysv_hash,
            order,
            extent: 2 * page_size(),
            ..spec
        }
        .build();
        child::forked(|| {
            child::set_vdso(a_page_with(&built.bytes[..page_size()]));
            check(
                &format!("cut before {last:?}"),
                Some(Unmapped),
                Some([FallbackReason::NoVdso(Unmapped); 5]),
            );
        });
    }
}

/// Counts the probes of an image that has only code in its second page, and of one that has a table
/// there.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
#[test]
fn a_first_call_probes_each_page_with_tables_once_and_no_other() {
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use test_support::nix::sys::mman::ProtFlags;
    use test_support::nix::sys::signal::{SaFlags, Signal};
    use test_support::{filter, signals};

    static PROBES: AtomicUsize = AtomicUsize::new(0);

    /// Answers that the page can be read.
    extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        PROBES.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the kernel gives a handler with SA_SIGINFO the registers.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        context.uc_mcontext.gregs[libc::REG_RAX as usize] = -i64::from(libc::EINVAL);
    }

    let Some(abi) = NATIVE else {
        return not_run_here("no table for this architecture");
    };
    for (last, probes) in [(Part::Text, 1), (Part::Strtab, 2)] {
        let built = Spec {
            order: Part::with_last(&[last]),
            extent: 2 * page_size(),
            ..Spec::of(abi, names(abi))
        }
        .build();
        child::forked(|| {
            let pages = Pages::new(2);
            pages.fill(&built.bytes);
            pages.protect(ProtFlags::PROT_READ | ProtFlags::PROT_EXEC);
            child::set_vdso(pages.addr());
            signals::handle(Signal::SIGSYS, SaFlags::empty(), on_trap);
            if filter::restrict(&[libc::SYS_rt_sigprocmask as u32], filter::TRAP).is_err() {
                return not_run_here("there is no seccomp");
            }
            vdso_time::warm_up();
            assert_eq!(PROBES.load(Ordering::Relaxed), probes, "{last:?} is last");
            assert_eq!(reasons(&routes()), [None; 5]);
        });
    }
}

#[cfg(target_arch = "x86")]
std::arch::global_asm!(
    ".globl vdso_time_test_call",
    "vdso_time_test_call:",
    "int 0x80",
    "ret"
);

/// Replaces the address in the vDSO by which libc on i386 makes this thread's system calls.
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

/// Returns the mapping of the vDSO, which libc does not need any more, or records the test as not
/// run.
fn vdso() -> Option<(NonNull<c_void>, usize)> {
    if !has_proc() {
        return None;
    }
    let start = oracle::sysinfo_ehdr();
    let mut all = maps::all("self").ok()?.into_iter();
    let Some(mapping) = all.find(|mapping| mapping.range.start == start) else {
        not_run_here("this process has no vDSO");
        return None;
    };
    leave_the_vdso();
    Some((
        NonNull::new(ptr::with_exposed_provenance_mut(start)).unwrap(),
        mapping.range.len(),
    ))
}

fn unmaps_the_vdso() -> bool {
    let Some((start, size)) = vdso() else {
        return false;
    };
    // SAFETY: nothing uses the vDSO any more.
    unsafe { munmap(start, size) }.expect("munmap");
    true
}

fn moves_the_vdso() -> bool {
    let Some((start, size)) = vdso() else {
        return false;
    };
    let pages = Pages::new(2);
    let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
    // SAFETY: it replaces these pages, and what the kernel put after them.
    let moved = unsafe { mremap(start, size, size, flags, Some(pages.base)) };
    moved
        .map_err(|error| not_run_here(format!("mremap: {error}")))
        .is_ok()
}
