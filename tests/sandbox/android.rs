//! The promise: Android's filter for apps catches no system call of this crate.
//!
//! The filter kills for a system call that Android's libc does not make. On 32-bit Linux the crate
//! makes the 64-bit calls first, which the lists before Android 11 do not have. With the cfg
//! `vdso_time_android_calls` it makes Android's calls only, and no call may be caught:
//!
//! `RUSTFLAGS="--cfg vdso_time_android_calls" cargo xtask on i686 test --test sandbox -- android`

#![allow(unsafe_code, reason = "libc is called here")]

use std::env::consts::ARCH;

use test_support::child::{self, End, SUCCESS};
use test_support::filter::{self, ALLOW, Action, KILL_PROCESS};
use test_support::nix::sys::signal::Signal;
use test_support::{CLOCKS, FUNCTIONS, PATHS, not_run_here, oracle};
use vdso_time::__private::{ALL, Shape};
use vdso_time::LocateError;
use vdso_time::vdso::Vdso;
use vdso_time::{Boottime, ClockId, Errno, Instant, SystemTime};

/// Whether these are the calls of a 32-bit program on Linux, where the 64-bit calls come first.
const IS_LINUX_ORDER: bool = cfg!(all(
    target_pointer_width = "32",
    not(any(target_os = "android", vdso_time_android_calls))
));

/// The releases whose lists differ in the calls below: the first with a filter, and one more.
const RELEASES: [u32; 2] = [8, 11];

/// The columns of [`CALLS`].
const ARCHES: [&str; 4] = ["x86", "x86_64", "aarch64", "arm"];

/// No such call.
const NONE: u32 = u32::MAX;
/// No release allows it.
const NEVER: u32 = u32::MAX;

/// The numbers of a system call, and the first release that allows it to an app.
///
/// They are from github.com/aosp-mirror/platform_bionic at the tags of Android 8.0 to 15. The list
/// of an app is libc/SYSCALLS.TXT, without SECCOMP_BLOCKLIST_{COMMON,APP}.TXT, with
/// SECCOMP_ALLOWLIST_{COMMON,APP}.TXT. It has some 200 calls more than this table.
const CALLS: &[([u32; 4], u32)] = &[
    ([265, 228, 113, 263], 8),      // clock_gettime
    ([266, 229, 114, 264], 8),      // clock_getres
    ([78, 96, 169, 78], 8),         // gettimeofday
    ([318, 309, 168, 345], 8),      // getcpu
    ([403, NONE, NONE, 403], 11),   // clock_gettime64
    ([406, NONE, NONE, 406], 11),   // clock_getres_time64
    ([13, 201, NONE, NONE], NEVER), // time
    ([1000; 4], NEVER),             // no system call
    ([175, 14, 135, 175], 8),       // rt_sigprocmask
    ([172, 157, 167, 172], 8),      // prctl
    ([295, 257, 56, 322], 8),       // openat
    ([3, 0, 63, 3], 8),             // read
    ([6, 3, 57, 6], 8),             // close
    ([192, 9, 222, 192], 8),        // mmap, and mmap2 of 32 bits
    ([252, 231, 94, 248], 8),       // exit_group, of the tests
    ([173, 15, 139, 173], 8),       // rt_sigreturn, of the tests
];

/// Returns the numbers of the calls that an app of this release may make, or must not make.
fn calls(arch: &str, release: u32, may: bool) -> Vec<u32> {
    let column = ARCHES.iter().position(|name| *name == arch);
    let column = column.expect("an architecture of the table");
    let mut found = Vec::new();
    for (numbers, since) in CALLS {
        let number = numbers[column];
        if number != NONE && (*since <= release) == may {
            found.push(number);
        }
    }
    found
}

/// How a child ends that makes a call that the filter does not allow.
const CAUGHT: End = End::Signal(Signal::SIGSYS);

/// Returns how a child ends that does `work` under the filter of a release, with this action at
/// clock_gettime(2). `work` returns whether the answer was good. It must not allocate, because the
/// filter has only the calls of the table.
fn end(release: u32, clock_gettime: Action, has_vdso: bool, work: impl FnOnce() -> bool) -> End {
    let mut actions = vec![(libc::SYS_clock_gettime as u32, clock_gettime)];
    for call in calls(ARCH, release, true) {
        actions.push((call, ALLOW));
    }
    let mut program = filter::program(&actions, KILL_PROCESS, KILL_PROCESS);
    child::end_of(|| {
        if !has_vdso {
            child::set_vdso(0);
        }
        filter::install(&mut program).unwrap();
        work()
    })
}

/// A name, and a function that returns whether the answer is good.
type Read = (&'static str, fn() -> bool);

/// Every way to read a clock. The other clocks as types call `clock_gettime`.
const READS: &[Read] = &[
    ("locate", || {
        matches!(Vdso::locate(), Ok(_) | Err(LocateError::Absent))
    }),
    ("the five functions", || {
        for function in &FUNCTIONS {
            for clock in CLOCKS {
                for path in &PATHS {
                    if (function.read)(path, clock).is_err() {
                        return false;
                    }
                }
            }
        }
        vdso_time::time() > 0 && vdso_time::try_time().is_ok()
    }),
    ("no such clock", || {
        vdso_time::clock_gettime(ClockId::from_raw(99)) == Err(Errno::EINVAL)
    }),
    ("the types", || {
        Instant::now() <= Instant::now()
            && SystemTime::now() > SystemTime::UNIX_EPOCH
            && Boottime::try_now().is_ok()
    }),
    ("routes", || {
        vdso_time::warm_up();
        vdso_time::routes() == vdso_time::routes()
    }),
];

#[test]
fn no_read_is_caught_with_a_vdso_or_without_one() {
    if !filter::works() {
        return;
    }
    for release in RELEASES {
        if oracle::sysinfo_ehdr() == 0 {
            not_run_here("this process has no vDSO");
        } else {
            assert_not_caught(release, true);
        }
        assert_not_caught(release, false);
    }
}

fn assert_not_caught(release: u32, has_vdso: bool) {
    for (name, read) in READS {
        let end = end(release, ALLOW, has_vdso, read);
        let is_old_list = IS_LINUX_ORDER && release < 11 && end == CAUGHT;
        assert!(
            end == SUCCESS || is_old_list,
            "{name}, Android {release}, {has_vdso}: {end:?}"
        );
    }
}

/// Makes such a call. Without this test, those above could pass under a filter that allows
/// everything.
#[test]
fn a_call_that_is_not_on_the_list_is_caught() {
    if !filter::works() {
        return;
    }
    for release in RELEASES {
        for number in calls(ARCH, release, false) {
            // SAFETY: the calls of the table accept two zeros, or refuse them.
            let call =
                move || unsafe { libc::syscall(libc::c_long::from(number as i32), 0, 0) } == 0;
            assert_eq!(
                end(release, ALLOW, true, call),
                CAUGHT,
                "{number} on Android {release}"
            );
        }
    }
}

/// Compares Android's tables with the oldest list, for every architecture that Android has. The
/// tables of 32-bit Linux have one more row in front, with 64-bit times. `tests/calls/tables.rs`
/// compares those with libc.
#[test]
fn tables_have_only_calls_of_the_oldest_list() {
    const IS_ANDROID: bool = cfg!(any(target_os = "android", vdso_time_android_calls));
    for abi in ALL.iter().filter(|abi| ARCHES.contains(&abi.name)) {
        let allowed = calls(abi.name, RELEASES[0], true);
        for (name, function) in abi.functions() {
            let skipped = usize::from(abi.class == 1 && name != "getcpu" && !IS_ANDROID);
            let rows = &function.syscalls[skipped..];
            let numbers: Vec<u32> = rows.iter().map(|call| call.number).collect();
            assert!(!numbers.is_empty(), "{name} of {}", abi.name);
            let are_allowed = numbers.iter().all(|number| allowed.contains(number));
            assert!(are_allowed, "{name} of {}: {numbers:?}", abi.name);
            for symbol in function.candidates {
                let is_64_bit_call = abi.class == 1 && symbol.shape == Shape::Timespec64;
                assert!(!is_64_bit_call || !IS_ANDROID, "{name} of {}", abi.name);
            }
        }
        let found = &abi.discovery;
        let kernel_and_signals = [found.prctl, found.rt_sigprocmask];
        let file = [found.openat, found.read, found.close];
        for number in [&kernel_and_signals[..], &file].concat() {
            let is_allowed = allowed.contains(&number);
            assert!(is_allowed, "discovery on {}: {number}", abi.name);
        }
    }
}
