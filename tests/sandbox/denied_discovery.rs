//! The promise: what a sandbox denies of looking for the vDSO is done without, and a process without /proc is no worse off.

#![allow(unsafe_code, reason = "libc is called here")]

use test_support::filter;

use std::ffi::{CString, c_long};
use std::fs;
use std::io;
use std::path::Path;

use test_support::{PATHS, answers, child, not_run_here, oracle};
use vdso_time::arch::NATIVE;
use vdso_time::vdso::{LocateError, Vdso};
use vdso_time::{FallbackReason, Route};

/// Fails unless the vDSO is found, or not for this reason, and everything is answered rightly.
#[track_caller]
fn check(state: &str, expected: Option<LocateError>) {
    let expected = if oracle::sysinfo_ehdr() == 0 { Some(LocateError::Absent) } else { expected };
    assert_eq!(Vdso::locate().err(), expected, "{state}");
    for path in &PATHS {
        assert_eq!(answers::wrong(path), None, "{state}: {}", path.name);
    }
    let routes = vdso_time::routes();
    // It was found if there is a function, or the image is the reason why there is none.
    let is_found = !matches!(routes.clock_gettime, Route::Syscall { reason: FallbackReason::NoVdso(_), .. });
    assert!(is_found != expected.is_some() || oracle::sysinfo_ehdr() == 0, "{state}: {routes}");
}

/// Makes the kernel answer these system calls with an error.
fn deny(calls: &[c_long], error: i32) -> bool {
    let Some(abi) = NATIVE else { return false };
    let calls: Vec<u32> = calls.iter().map(|call| *call as u32).collect();
    let denied = filter::install(&mut filter::denying(abi, &calls, error));
    denied.map_err(|error| not_run_here("seccomp", format!("seccomp: {error}"))).is_ok()
}

/// Makes this folder the root: there is no /proc any more.
fn leave_proc(folder: &Path) -> io::Result<()> {
    let path = CString::new(folder.to_str().unwrap()).unwrap();
    // SAFETY: it takes a number. The first user of a namespace may do what root may.
    unsafe { libc::unshare(libc::CLONE_NEWUSER) };
    // SAFETY: the path is a C string.
    let left = unsafe { libc::chroot(path.as_ptr()) };
    if left == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel has PR_GET_AUXV; QEMU's user mode has not.
fn tells_the_vector() -> bool {
    let mut vector = [0_usize; 128];
    // SAFETY: the kernel writes at most this many bytes there.
    unsafe { libc::prctl(0x4155_5856, vector.as_mut_ptr(), size_of_val(&vector), 0, 0) > 0 }
}

#[test]
fn a_denied_question_is_done_without() {
    use LocateError::{Absent, Unchecked};
    const LIBC: bool = cfg!(feature = "libc");
    let unless_libc = |error| Some(error).filter(|_| !LIBC);
    let tells = tells_the_vector();
    for (state, calls, expected) in [
        ("no prctl", &[libc::SYS_prctl][..], None),
        ("no openat", &[libc::SYS_openat], unless_libc(Absent).filter(|_| !tells)),
        ("neither", &[libc::SYS_prctl, libc::SYS_openat], unless_libc(Absent)),
        ("no rt_sigprocmask", &[libc::SYS_rt_sigprocmask], unless_libc(Unchecked)),
    ] {
        for error in [libc::EPERM, libc::ENOSYS] {
            child::forked(|| {
                if deny(calls, error) {
                    check(state, expected);
                }
            });
        }
    }
}

#[test]
fn without_proc_the_kernel_or_libc_tells() {
    let tells = tells_the_vector();
    let empty = std::env::temp_dir().join(format!("vdso-time-{}", std::process::id()));
    fs::create_dir(&empty).unwrap();
    for denied in [&[][..], &[libc::SYS_prctl]] {
        child::forked(|| {
            if let Err(error) = leave_proc(&empty) {
                return not_run_here("chroot", format!("chroot: {error}"));
            }
            assert!(fs::metadata("/proc").is_err());
            if denied.is_empty() || deny(denied, libc::EPERM) {
                let is_told = cfg!(feature = "libc") || tells && denied.is_empty();
                let expected = Some(LocateError::Absent).filter(|_| !is_told);
                check(&format!("without /proc and {denied:?}"), expected);
            }
        });
    }
    fs::remove_dir(empty).unwrap();
}
