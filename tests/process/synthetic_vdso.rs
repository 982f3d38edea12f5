//! A vDSO whose functions return what a test needs, given to `vdso::set_address` in a child. Each
//! function is tested alone: the crate believes its answer, rejects it, or asks the kernel instead,
//! as documented.

#![allow(unsafe_code, reason = "code is mapped, and called through the crate")]

use std::ffi::{c_int, c_void};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use test_images::{Built, Spec, Sym, Value, names};
use test_support::functions::Function;
use test_support::nix::sys::mman::ProtFlags;
use test_support::nix::sys::signal::{SaFlags, Signal};
use test_support::{
    FUNCTIONS, PATHS, Pages, assert_bracketed, child, filter, not_run_here, oracle, signals,
};
use vdso_time::__private::{Abi, NATIVE, Shape};
use vdso_time::{
    ClockId, Errno, FallbackReason, Route, Timespec, Timeval, routes, syscall, time, try_time,
};

/// A function of the vDSO. Its code is copied, so it must not depend on where it is.
type Code = *const ();

extern "C" fn returning<const NUMBER: i32>() -> isize {
    NUMBER as isize
}

/// The answer of a 32-bit function.
#[repr(C)]
struct Time32 {
    seconds: i32,
    fraction: i32,
}

extern "C" fn writing_clock_gettime<const SECONDS: i32>(_: i32, out: &mut Time32) -> i32 {
    out.seconds = SECONDS;
    out.fraction = 0;
    0
}

/// Where the code is in the image, which has one page. A debug build's code is not longer.
const CODE: usize = 4096 - 256;

const EM_ARM: u16 = 40;

/// Maps an image whose symbols all have this code, and says that it is this process's vDSO.
fn give(spec: Spec<'_>, code: Code) {
    // Bit 0 of an address marks Thumb code.
    let thumb = if spec.machine == EM_ARM {
        code.addr() & 1
    } else {
        0
    };
    let mut spec = Spec {
        extent: 4096,
        ..spec
    };
    for symbol in &mut spec.symbols {
        symbol.value = Value::Exactly((CODE + thumb) as u64);
    }
    let Built { mut bytes, .. } = spec.build();
    // SAFETY: it is in this program's code, in which more follows than is copied.
    let code =
        unsafe { std::slice::from_raw_parts(code.cast::<u8>().wrapping_sub(thumb), 4096 - CODE) };
    bytes[CODE..].copy_from_slice(code);
    let pages = Pages::new(1);
    pages.fill(&bytes);
    pages.protect(ProtFlags::PROT_READ | ProtFlags::PROT_EXEC);
    child::set_vdso(pages.addr());
}

/// Does `work` in a child whose vDSO has this code for every function.
fn where_all_are(code: Code, work: impl Fn(&'static Abi)) {
    let Some(abi) = NATIVE else {
        return not_run_here("libc answers");
    };
    child::forked(|| {
        give(Spec::of(abi, names(abi)), code);
        work(abi);
    });
}

fn assert_all_clocks_right(function: &Function) {
    for clock in function.clocks() {
        function.assert_right(&PATHS[0], *clock);
    }
}

/// Refuses with error numbers, and with a number that is not one. `time` believes its symbol,
/// because every kernel's returns a time; `try_time` asks the kernel after an error.
#[test]
fn a_refusal_other_than_einval_is_asked_of_the_kernel() {
    for (code, is_error) in [
        (returning::<{ -libc::ENOSYS }> as Code, true),
        (returning::<{ -libc::EPERM }> as Code, true),
        (returning::<-1> as Code, true),
        (returning::<-4095> as Code, true),
        (returning::<1> as Code, false),
    ] {
        where_all_are(code, |abi| {
            let has_time = abi.time.candidates[0].shape == Shape::Time64;
            for function in &FUNCTIONS {
                if function.name != "time" || !has_time {
                    assert_all_clocks_right(function);
                }
            }
            if is_error || !has_time {
                assert_bracketed("try_time", true, oracle::seconds, try_time);
            } else {
                assert_eq!((time(), try_time()), (1, Ok(1)));
            }
            assert_eq!(
                vdso_time::clock_gettime(ClockId::from_raw(99)),
                Err(Errno::EINVAL)
            );
        });
    }
}

/// Fills the stack below this frame with a pattern, which uninitialised variables of a later call
/// show.
#[inline(never)]
fn poison_the_stack() {
    std::hint::black_box([0xaa_u8; 16 * 1024]);
}

/// Answers 0 and writes nothing: the result is 0, and nothing of the stack reaches the caller. No
/// clock has a resolution of 0. A `clock_getres` that CRIU leaves in a process restored on another
/// kernel answers so.
#[test]
fn an_answer_that_was_not_written_is_zero_and_a_resolution_is_asked_of_the_kernel() {
    fn read<T: Debug + PartialEq>(function: impl Fn() -> T, zero: &T) {
        poison_the_stack();
        assert_eq!(function(), *zero);
    }
    where_all_are(returning::<0> as Code, |abi| {
        assert_eq!(time(), 0);
        for _ in 0..2 {
            read(
                || vdso_time::clock_gettime(ClockId::MONOTONIC),
                &Ok(Timespec::default()),
            );
            read(vdso_time::gettimeofday, &Ok(Timeval::default()));
            if !abi.getcpu.candidates.is_empty() {
                read(
                    || vdso_time::getcpu().map(|here| (here.cpu, here.node)),
                    &Ok((0, 0)),
                );
            }
        }
        for function in &FUNCTIONS {
            if function.name == "clock_getres" {
                assert_all_clocks_right(function);
            }
        }
        assert_eq!(
            vdso_time::clock_getres(ClockId::from_raw(99)),
            Err(Errno::EINVAL)
        );
    });
}

/// Expects the second 0, because the vDSO writes nothing. The kernel's is not 0.
#[test]
fn time_is_the_second_of_clock_gettime_in_an_image_without_time() {
    let Some(abi) = NATIVE else {
        return not_run_here("libc answers");
    };
    child::forked(|| {
        give(
            Spec::of(abi, [abi.clock_gettime.candidates[0].name]),
            returning::<0> as Code,
        );
        assert_eq!((time(), try_time()), (0, Ok(0)));
    });
}

/// Writes negative seconds, as 32-bit symbols do after January 2038. Then the 64-bit system call
/// answers.
#[test]
fn a_32_bit_time_is_believed_unless_it_is_negative() {
    const IN_2030: i32 = 1_900_000_000;
    const IN_2040: i32 = 2_208_988_800_i64 as i32;
    const SYMBOL: &str = "__vdso_clock_gettime";
    let abi = match NATIVE {
        Some(abi) if abi.class == 1 => abi,
        _ => return not_run_here("no 32-bit symbols"),
    };
    for (seconds, code) in [
        (IN_2030, writing_clock_gettime::<IN_2030> as Code),
        (IN_2040, writing_clock_gettime::<IN_2040> as Code),
    ] {
        child::forked(|| {
            give(Spec::of(abi, [SYMBOL]), code);
            let clock = |clock: ClockId| vdso_time::clock_gettime(clock).map(|now| now.tv_sec);
            let reads: [(_, &dyn Fn() -> Result<i64, Errno>); 6] = [
                (ClockId::REALTIME_COARSE, &|| Ok(time())),
                (ClockId::REALTIME, &|| {
                    vdso_time::gettimeofday().map(|now| now.tv_sec)
                }),
                (ClockId::REALTIME, &|| clock(ClockId::REALTIME)),
                (ClockId::REALTIME_COARSE, &|| {
                    clock(ClockId::REALTIME_COARSE)
                }),
                (ClockId::TAI, &|| clock(ClockId::TAI)),
                (ClockId::MONOTONIC, &|| clock(ClockId::MONOTONIC)),
            ];
            for (clock, read) in reads {
                if seconds > 0 {
                    assert_eq!(read(), Ok(seconds.into()), "{clock}");
                } else {
                    let kernel = || oracle::clock_gettime(clock.as_raw()).map(|now| now.tv_sec);
                    assert_bracketed("the 64-bit call", true, kernel, read);
                }
            }
            let routes = routes();
            for route in [routes.time, routes.gettimeofday, routes.clock_gettime] {
                assert!(
                    matches!(route, Route::Vdso { symbol: SYMBOL, .. }),
                    "{routes}"
                );
            }
        });
    }
}

#[test]
fn einval_is_final() {
    where_all_are(returning::<{ -libc::EINVAL }> as Code, |_| {
        assert_eq!(
            vdso_time::clock_gettime(ClockId::MONOTONIC),
            Err(Errno::EINVAL)
        );
        assert_eq!(
            vdso_time::clock_getres(ClockId::MONOTONIC),
            Err(Errno::EINVAL)
        );
        // EINVAL is not final for these, because the crate chooses their clock: another call
        // answers.
        assert!(vdso_time::gettimeofday().is_ok());
        assert!(try_time().unwrap() > 1_700_000_000);
    });
}

/// Fails unless the first symbol of a function answers it, or a system call if it has no symbol.
fn assert_calls_first(
    function: &vdso_time::__private::Entry,
    route: Route,
    expected: Option<&str>,
) {
    match (function.candidates.first(), route) {
        (
            Some(first),
            Route::Vdso {
                symbol, version, ..
            },
        ) => {
            assert_eq!(symbol, first.name);
            assert_eq!(version, expected);
        }
        (None, Route::Syscall { .. }) => {}
        (first, route) => panic!("{first:?} {route:?}"),
    }
}

/// Shows that a slot keeps the vDSO's function, whatever that answers, and that `time` believes its
/// own.
#[test]
fn the_functions_of_the_image_are_the_ones_called() {
    let Some(abi) = NATIVE else {
        return not_run_here("libc answers");
    };
    for version in [None, Some(abi.version)] {
        child::forked(|| {
            let spec = Spec::of(abi, names(abi));
            give(
                Spec {
                    versions: version.is_some(),
                    ..spec
                },
                returning::<12345> as Code,
            );
            if abi.time.candidates[0].shape == Shape::Time64 {
                assert_eq!(time(), 12345);
            }
            let _ = vdso_time::clock_gettime(ClockId::MONOTONIC);
            let mut routes = routes().functions();
            for (_, function) in abi.functions() {
                let (_, route) = routes.next().unwrap();
                assert_calls_first(function, route, version);
            }
        });
    }
}

/// Puts an unreadable page after the image, which no check may ask for.
#[test]
fn code_that_ends_with_the_image_is_used() {
    let Some(abi) = NATIVE else {
        return not_run_here("libc answers");
    };
    for size in [0, 4096 - CODE as u64, u64::MAX] {
        child::forked(|| {
            let mut spec = Spec::of(abi, names(abi));
            for symbol in &mut spec.symbols {
                symbol.size = size;
            }
            give(spec, returning::<0> as Code);
            assert!(
                matches!(routes().clock_gettime, Route::Vdso { .. }),
                "{size}: {}",
                routes()
            );
        });
    }
}

static IS_DENIED: AtomicBool = AtomicBool::new(false);
static IS_FOUND: AtomicBool = AtomicBool::new(false);

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::Relaxed) {
        thread::yield_now();
    }
}

extern "C" fn on_denied(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    IS_DENIED.store(true, Ordering::Relaxed);
    wait_for(&IS_FOUND);
}

/// Denies one thread the check of the address that the program set, and holds it there until
/// another thread has found the vDSO. The image's EINVAL shows who answers.
#[test]
fn a_first_call_in_a_sandbox_does_not_replace_what_another_thread_found() {
    where_all_are(returning::<{ -libc::EINVAL }> as Code, |abi| {
        signals::handle(Signal::SIGSYS, SaFlags::empty(), on_denied);
        let sandboxed = thread::spawn(|| {
            if let Err(error) = filter::restrict(&[abi.discovery.rt_sigprocmask], filter::TRAP) {
                not_run_here(format!("seccomp: {error}"));
                IS_DENIED.store(true, Ordering::Relaxed);
            }
            (vdso_time::clock_gettime(ClockId::MONOTONIC), routes())
        });
        wait_for(&IS_DENIED);
        let found = routes();
        IS_FOUND.store(true, Ordering::Relaxed);
        assert_eq!(sandboxed.join().unwrap(), (Err(Errno::EINVAL), found));
        assert_eq!(
            vdso_time::clock_gettime(ClockId::MONOTONIC),
            Err(Errno::EINVAL)
        );
        assert_eq!(routes(), found);
        assert!(matches!(found.clock_gettime, Route::Vdso { .. }), "{found}");
    });
}

/// i386's vDSO has a function that enters the kernel. Elsewhere, and in other images, a symbol of
/// that name is not called.
#[test]
fn only_the_entry_of_an_i386_image_makes_system_calls() {
    let Some(abi) = NATIVE else {
        return not_run_here("libc makes the calls");
    };
    for (state, version, foreign, is_called) in [
        (
            "as the kernel has it",
            "LINUX_2.5",
            false,
            abi.name == "x86",
        ),
        ("of another version", "LINUX_2.6", false, false),
        (
            "in an image of another architecture",
            "LINUX_2.5",
            true,
            false,
        ),
    ] {
        child::forked(|| {
            let code = returning::<{ -libc::ENOTTY }> as Code;
            let mut spec = Spec::of(abi, [abi.clock_gettime.candidates[0].name]);
            spec.symbols.push(Sym::func("__kernel_vsyscall", version));
            give(
                Spec {
                    machine: if foreign { 0 } else { abi.machine },
                    ..spec
                },
                code,
            );
            // The image has not been looked at yet.
            assert!(syscall::getcpu().is_ok(), "{state}");
            let answers = [vdso_time::getcpu().err(), syscall::getcpu().err()];
            let expected = is_called.then(|| Errno::from_raw_os_error(libc::ENOTTY).unwrap());
            assert_eq!(answers, [expected; 2], "{state}");
            let route = routes().clock_gettime;
            let is_refused = matches!(
                route,
                Route::Syscall {
                    reason: FallbackReason::ForeignImage,
                    ..
                }
            );
            assert_eq!(is_refused, foreign, "{state}: {route:?}");
        });
    }
}
