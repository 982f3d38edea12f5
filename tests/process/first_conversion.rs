//! The first conversion between [`vdso_time::Instant`] and [`std::time::Instant`].

#![allow(unsafe_code, reason = "init is called here")]

use std::hint;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant as Std};

use test_support::{child, filter, not_run, not_run_here};
use vdso_time::arch::NATIVE;
use vdso_time::{Errno, Instant};

/// A race that has not begun by then never does.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn threads_that_race_for_the_first_conversion_get_one_offset() {
    child::fresh(50, || {
        let (ours, std) = (Instant::now(), Std::now());
        let both = || (Std::try_from(ours).unwrap(), Instant::try_from(std).unwrap());
        let ready = AtomicUsize::new(0);
        let race = || {
            ready.fetch_add(1, Ordering::Relaxed);
            while ready.load(Ordering::Relaxed) < 2 {
                assert!(ours.elapsed() < LIMIT, "the other thread does not start");
                hint::spin_loop();
            }
            both()
        };
        thread::scope(|scope| {
            for thread in [(); 2].map(|()| scope.spawn(race)) {
                assert_eq!(thread.join().unwrap(), both());
            }
        });
    });
}

#[test]
fn a_clock_that_is_denied_at_the_first_conversion_is_an_error() {
    child::fresh(1, || {
        let Some(abi) = NATIVE else { return not_run("libc makes the calls") };
        // SAFETY: null is always allowed.
        unsafe { vdso_time::init(ptr::null()) };
        let std = Std::now();
        let denied = filter::clock_calls(abi);
        if let Err(error) = filter::install(&mut filter::denying(abi, &denied, libc::EPERM)) {
            return not_run_here("seccomp", format!("seccomp: {error}"));
        }
        assert_eq!(Std::try_from(Instant::from_nanos(0)), Err(Errno::EPERM));
        assert_eq!(Instant::try_from(std), Err(Errno::EPERM));
    });
}
