//! Processes whose vDSO is not where the auxiliary vector says. Every function is right in each.

#![allow(unsafe_code, reason = "mappings are removed, and init gets wrong addresses")]

use std::error::Error;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

use test_images::{Part, Spec, Value, names};
use test_support::functions::assert_all_right;
use test_support::nix::sys::mman::{MRemapFlags, mremap, munmap};
use test_support::{Need, PATHS, Pages, child, has_proc, maps, not_run, not_run_here, oracle, page_size};
use vdso_time::__private::NATIVE;
use vdso_time::LocateError;
use vdso_time::elf::ParseError;
use vdso_time::vdso::Vdso;
use vdso_time::{FallbackReason, Route, routes};

use super::reasons;

/// Fails unless the vDSO is not found, for this reason, and the kernel answers everything.
#[track_caller]
fn check(state: &str, why: LocateError) {
    check_reasons(state, why, [FallbackReason::NoVdso(why); 5]);
}

#[track_caller]
fn check_reasons(state: &str, why: LocateError, expected: [FallbackReason; 5]) {
    assert_eq!(Vdso::locate().err(), Some(why), "{state}");
    let is_malformed = matches!(why, LocateError::Malformed(_));
    assert_eq!(why.source().is_some_and(<dyn Error>::is::<ParseError>), is_malformed, "{state}");
    PATHS.iter().for_each(assert_all_right);
    let is_libc = routes().time == Route::Libc;
    assert!(is_libc || reasons(&routes()) == expected.map(Some), "{state}: {}", routes());
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

/// Makes the address that `vdso::set_address` gets.
type Make = fn() -> usize;

const STATES: [(&str, Make, LocateError); 6] = [
    ("0", || 0, LocateError::Absent),
    ("an unmapped page", an_unmapped_page, LocateError::Unmapped),
    ("a page that cannot be read", || Pages::new(1).addr(), LocateError::Unmapped),
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

/// The second page of each image, with its code, the end of its code, or one of its tables, cannot
/// be read.
#[test]
fn an_image_that_is_cut_short_is_noticed() {
    let Some(abi) = NATIVE else { return not_run("no table for this architecture") };
    let across = Value::Exactly(page_size() as u64 - 8);
    let parts = Part::ALL.iter().map(|part| (*part, Value::Next)).chain([(Part::Text, across)]);
    for (last, value) in parts {
        let mut spec = Spec::of(abi, names(abi));
        for symbol in &mut spec.symbols {
            (symbol.value, symbol.size) = (value, 16);
        }
        // A table of GNU's is read if there is no other.
        let (sysv_hash, order) = (last != Part::GnuHash, Part::with_last(&[last]));
        let built = Spec { sysv_hash, order, extent: 2 * page_size(), ..spec }.build();
        child::forked(|| {
            child::set_vdso(a_page_with(&built.bytes[..page_size()]));
            let expected = abi.functions().map(|(_, function)| {
                let has_none = last == Part::Text && function.candidates.is_empty();
                if has_none {
                    FallbackReason::NoSymbol
                } else {
                    FallbackReason::NoVdso(LocateError::Unmapped)
                }
            });
            check_reasons(&format!("cut before {last:?}, {value:?}"), LocateError::Unmapped, expected);
        });
    }
}

/// The tables are in the first page of the image, and the code of all functions in the second.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
#[test]
fn a_first_call_probes_a_page_once() {
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

    let Some(abi) = NATIVE else { return not_run("no table for this architecture") };
    let mut spec = Spec::of(abi, names(abi));
    spec.symbols.iter_mut().for_each(|symbol| (symbol.value, symbol.size) = (Value::Next, 16));
    let built = Spec { order: Part::with_last(&[Part::Text]), extent: 2 * page_size(), ..spec }.build();
    child::forked(|| {
        let pages = Pages::new(2);
        pages.fill(&[0xc3; 2 * 4096]); // `ret`
        pages.fill(&built.bytes[..page_size()]);
        pages.protect(ProtFlags::PROT_READ | ProtFlags::PROT_EXEC);
        child::set_vdso(pages.addr());
        signals::handle(Signal::SIGSYS, SaFlags::empty(), on_trap);
        if filter::restrict(&[libc::SYS_rt_sigprocmask as u32], filter::TRAP).is_err() {
            return not_run_here(Need::Seccomp, "there is no seccomp");
        }
        vdso_time::warm_up();
        assert_eq!(PROBES.load(Ordering::Relaxed), 2);
        assert_eq!(reasons(&routes()), [None; 5]);
    });
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
            Err(error) => not_run_here(Need::Mremap, format!("mremap: {error}")),
        }
    });
}
