//! The promise: Android's filter for apps catches no system call of this crate.
//!
//! The filter kills for a system call that Android's libc does not make. On 32-bit Linux the crate
//! makes the 64-bit calls first, which the lists before Android 11 do not have, and the tests
//! expect that. With the cfg `vdso_time_android_order` the crate has Android's order, and no call
//! may be caught:
//!
//! `RUSTFLAGS="--cfg vdso_time_android_order" cargo xtask on i686 test --test sandbox -- android`

#![allow(unsafe_code, reason = "libc is called here")]

mod child;
mod lists;

use std::env::consts::ARCH;

use child::{End, Sigsys, Vdso, end};
use test_support::nix::sys::signal::Signal;
use test_support::{CLOCKS, FUNCTIONS, PATHS, not_run, not_run_here, oracle};
use vdso_time::arch::{ALL, Shape, TIME32_FIRST};
use vdso_time::vdso::{self, LocateError};
use vdso_time::{
    Boottime, Clock, ClockId, Errno, Instant, MonotonicCoarse, MonotonicRaw, RealtimeCoarse, SystemTime, Tai,
    WallClock, syscall,
};

/// Whether these calls are those of a 32-bit program on Linux, where the 64-bit ones come first.
const IS_LINUX_ORDER: bool = cfg!(target_pointer_width = "32") && !TIME32_FIRST;

/// A name, and what says whether the answer is good.
type Read = (&'static str, fn() -> bool);

/// Every function of the crate that reads a clock, or finds the vDSO.
const READS: &[Read] = &[
    ("the five functions", || {
        let is_read = |function: &test_support::functions::Function| {
            let read = |clock| PATHS.iter().all(|path| (function.read)(path, clock).is_ok());
            CLOCKS.into_iter().all(read)
        };
        FUNCTIONS.iter().all(is_read) && vdso_time::time() > 0
    }),
    ("try_time", || vdso_time::try_time().is_ok()),
    ("clock_gettime, no such clock", || {
        vdso_time::clock_gettime(ClockId::from_raw(99)) == Err(Errno::EINVAL)
    }),
    ("Instant", || Instant::try_now().is_ok() && Instant::now() <= Instant::now()),
    ("SystemTime", || SystemTime::try_now().is_ok() && SystemTime::now() > SystemTime::UNIX_EPOCH),
    ("Boottime", || Boottime::try_now().is_ok()),
    ("MonotonicRaw", || MonotonicRaw::try_now().is_ok()),
    ("MonotonicCoarse", || MonotonicCoarse::try_now().is_ok()),
    ("RealtimeCoarse", || RealtimeCoarse::try_now().is_ok()),
    ("Tai", || Tai::try_now().is_ok()),
    ("routes", || vdso_time::routes() == vdso_time::routes()),
    ("warm_up", || {
        vdso_time::warm_up();
        true
    }),
    #[cfg(feature = "counter")]
    ("counter", || {
        // Until it is calibrated, or is known not to be used, and for some renewals.
        let start = Instant::now();
        while start.elapsed().as_millis() < 60 {
            let _ = vdso_time::counter::monotonic();
            let _ = vdso_time::counter::realtime();
        }
        let _ = vdso_time::counter::status();
        vdso_time::counter::monotonic() > 0
    }),
];

/// Says why a child did not try, if it did not.
fn was_tried(end: End) -> bool {
    if let End::NotTried(missing, why) = end {
        not_run_here(missing, why);
    }
    !matches!(end, End::NotTried(..))
}

/// Checks each function in a child of its own. `locates` says whether the vDSO is as it should be.
fn check(vdso: Vdso, locates: fn() -> bool) {
    for release in lists::releases(ARCH) {
        let found = end(release, vdso, Sigsys::Reports, locates);
        if !was_tried(found) {
            return;
        }
        assert_eq!(found, End::Well, "Vdso::locate on Android {release}, vDSO {vdso:?}");
        for (name, read) in READS {
            let end = end(release, vdso, Sigsys::Reports, *read);
            let is_old_list = matches!(end, End::Trapped(403 | 406)) && release < 11;
            assert!(
                end == End::Well || (IS_LINUX_ORDER && is_old_list),
                "{name} on Android {release}, vDSO {vdso:?}: {end:?}"
            );
        }
    }
}

#[test]
fn with_a_vdso_no_function_is_caught() {
    if oracle::sysinfo_ehdr() == 0 {
        return not_run("this process has no vDSO");
    }
    check(Vdso::Kept, || vdso::Vdso::locate().is_ok());
}

#[test]
fn without_a_vdso_no_function_is_caught() {
    check(Vdso::Removed, || vdso::Vdso::locate().err() == Some(LocateError::Absent));
}

/// Such a clock says 1970, or the year in which the device was made.
#[test]
fn a_wall_clock_that_was_never_set_needs_no_64_bit_call() {
    if IS_LINUX_ORDER {
        return not_run("on 32-bit Linux the 64-bit system calls come first");
    }
    for seconds in [0, 1_500_000_000_i32] {
        let answers = move || {
            let now =
                [vdso_time::clock_gettime(ClockId::REALTIME), syscall::clock_gettime(ClockId::REALTIME)];
            now.iter().all(|now| now.is_ok_and(|now| now.tv_sec == i64::from(seconds)))
                && [vdso_time::time(), syscall::time().unwrap_or(-1)] == [i64::from(seconds); 2]
        };
        for release in lists::releases(ARCH) {
            let end = end(release, Vdso::Removed, Sigsys::Answers(seconds), answers);
            if !was_tried(end) {
                return;
            }
            assert_eq!(end, End::Well, "{seconds} s on Android {release}");
        }
    }
}

/// After January 2038 there is no way around the 64-bit call, which Android 11 allows.
#[test]
fn negative_seconds_are_asked_of_the_64_bit_call() {
    if cfg!(target_pointer_width = "64") || IS_LINUX_ORDER {
        return not_run("the 64-bit system calls come first");
    }
    for (release, expected) in [(10, End::Trapped(403)), (11, End::Well)] {
        let answers = || vdso_time::clock_gettime(ClockId::REALTIME).is_ok_and(|now| now.tv_sec > 0);
        let end = end(release, Vdso::Removed, Sigsys::Answers(i32::MIN), answers);
        if !was_tried(end) {
            return;
        }
        assert_eq!(end, expected, "Android {release}");
    }
}

/// Without this, the tests above could pass under a filter that allows everything.
#[test]
fn a_call_that_is_not_on_the_list_kills() {
    for release in lists::releases(ARCH) {
        // The last is the number of no system call.
        for number in lists::refused(ARCH, release).into_iter().chain([1000]) {
            let call = move || {
                // SAFETY: the calls of the table accept two zeros, or refuse them.
                unsafe { libc::syscall(libc::c_long::from(number as i32), 0, 0) };
                true
            };
            let ends = [Sigsys::Kills, Sigsys::Reports].map(|sigsys| end(release, Vdso::Kept, sigsys, call));
            if !was_tried(ends[0]) {
                return;
            }
            let expected = [End::Killed(Signal::SIGSYS), End::Trapped(number)];
            assert_eq!(ends, expected, "system call {number} on Android {release}");
        }
    }
}

/// The table's numbers are those of libc.
#[test]
fn the_lists_have_libcs_numbers() {
    let allowed = lists::allowed(ARCH, lists::OLDEST);
    for call in [
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_gettimeofday,
        libc::SYS_getcpu,
        libc::SYS_rt_sigprocmask,
        libc::SYS_prctl,
        libc::SYS_openat,
        libc::SYS_read,
        libc::SYS_close,
        libc::SYS_exit_group,
        libc::SYS_rt_sigreturn,
    ] {
        assert!(allowed.contains(&u32::try_from(call).unwrap()), "{call}");
    }
    assert_eq!(allowed.len(), 11);
}

/// On Android no system call outside of the oldest list is made before 2038. The tables say so, for
/// every architecture.
#[test]
fn before_2038_only_calls_of_the_oldest_list_are_made() {
    for abi in ALL {
        let allowed = lists::allowed(abi.name, lists::OLDEST);
        for (name, function) in abi.functions() {
            let is_64_bit_call = |shape| abi.class == 1 && shape == Shape::Timespec64;
            let calls = function.syscalls_in_order(true).take_while(|call| !is_64_bit_call(call.shape));
            let numbers: Vec<u32> = calls.map(|call| call.number).collect();
            assert!(!numbers.is_empty(), "{name} of {}", abi.name);
            for number in numbers {
                assert!(allowed.contains(&number), "{name} of {}: {number}", abi.name);
            }
        }
        let found = &abi.discovery;
        for number in [found.prctl, found.openat, found.read, found.close, found.rt_sigprocmask] {
            assert!(allowed.contains(&number), "discovery on {}: {number}", abi.name);
        }
    }
}
