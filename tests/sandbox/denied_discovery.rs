//! The promise: a sandbox may deny the queries that find the vDSO, and a process needs no /proc.

#![allow(unsafe_code, reason = "libc is called here")]

use std::ffi::c_long;
use std::fs;

use test_support::functions::assert_all_right;
use test_support::nix::sched::{CloneFlags, unshare};
use test_support::nix::unistd::chroot;
use test_support::{Need, PATHS, child, filter, not_run_here, oracle};
use vdso_time::LocateError;
use vdso_time::vdso::Vdso;
use vdso_time::{FallbackReason, Route};

/// Fails unless the vDSO is found, or not for this reason, and every function is right.
#[track_caller]
fn check(state: &str, expected: Option<LocateError>) {
    let expected = if oracle::sysinfo_ehdr() == 0 { Some(LocateError::Absent) } else { expected };
    assert_eq!(Vdso::locate().err(), expected, "{state}");
    PATHS.iter().for_each(assert_all_right);
    let routes = vdso_time::routes();
    // It was found if there is a function, or the image is the reason why there is none.
    let is_found = !matches!(routes.clock_gettime, Route::Syscall { reason: FallbackReason::NoVdso(_), .. });
    assert!(is_found != expected.is_some() || oracle::sysinfo_ehdr() == 0, "{state}: {routes}");
}

/// Makes the kernel answer these system calls with an error.
fn deny(calls: &[c_long], error: i32) -> bool {
    filter::deny(&calls.iter().map(|call| *call as u32).collect::<Vec<_>>(), error)
}

/// Whether the kernel has PR_GET_AUXV. QEMU's user mode does not.
fn has_get_auxv() -> bool {
    let mut vector = [0_usize; 128];
    // SAFETY: the kernel writes at most this many bytes there.
    unsafe { libc::prctl(0x4155_5856, vector.as_mut_ptr(), size_of_val(&vector), 0, 0) > 0 }
}

#[test]
fn a_denied_query_is_skipped() {
    use LocateError::{Absent, Unchecked};
    let unless_libc = |error| Some(error).filter(|_| !cfg!(feature = "libc"));
    for (state, is_set, calls, expected) in [
        ("no prctl", false, &[libc::SYS_prctl][..], None),
        ("no openat", false, &[libc::SYS_openat], unless_libc(Absent).filter(|_| !has_get_auxv())),
        ("neither", false, &[libc::SYS_prctl, libc::SYS_openat], unless_libc(Absent)),
        ("no rt_sigprocmask", false, &[libc::SYS_rt_sigprocmask], unless_libc(Unchecked)),
        // The address is the right one, but not getauxval's.
        ("a set address", true, &[], None),
        ("a set address that cannot be checked", true, &[libc::SYS_rt_sigprocmask], Some(Unchecked)),
    ] {
        for error in [libc::EPERM, libc::ENOSYS] {
            child::forked(|| {
                if is_set {
                    child::set_vdso(oracle::sysinfo_ehdr());
                }
                if deny(calls, error) {
                    check(state, expected);
                }
            });
        }
    }
}

#[test]
fn without_proc_the_kernel_or_libc_has_the_address() {
    let empty = std::env::temp_dir().join(format!("vdso-time-{}", std::process::id()));
    fs::create_dir(&empty).unwrap();
    for denied in [&[][..], &[libc::SYS_prctl]] {
        child::forked(|| {
            // The first user of a namespace may do what root may.
            let _ = unshare(CloneFlags::CLONE_NEWUSER);
            if let Err(error) = chroot(&empty) {
                return not_run_here(Need::Chroot, format!("chroot: {error}"));
            }
            assert!(fs::metadata("/proc").is_err());
            if denied.is_empty() || deny(denied, libc::EPERM) {
                let has_address = cfg!(feature = "libc") || has_get_auxv() && denied.is_empty();
                let expected = Some(LocateError::Absent).filter(|_| !has_address);
                check(&format!("without /proc and {denied:?}"), expected);
            }
        });
    }
    fs::remove_dir(empty).unwrap();
}
