//! A vDSO whose functions return what a test needs, given to `init` in a child. What it answers is
//! believed, refused or asked of the kernel as documented, and each function alone.

#![allow(unsafe_code, reason = "code is mapped, and called through the crate")]

use std::fmt::Debug;
use std::num::NonZeroUsize;

use test_images::{Spec, Sym};
use test_support::nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};
use test_support::{PATHS, assert_bracketed, child, not_run, oracle};
use vdso_time::arch::{Abi, Function, NATIVE, Shape};
use vdso_time::{ClockId, Errno, Route, Timespec, Timeval, routes, syscall, time, try_time};

/// Code that does nothing but return a number; `None` where none is written down.
fn returning(abi: &Abi, number: i32) -> Option<Vec<u8>> {
    let low = number.to_le_bytes();
    Some(match abi.name {
        // mov rax, number (sign-extended); ret
        "x86_64" => [&[0x48, 0xc7, 0xc0][..], &low, &[0xc3]].concat(),
        // mov eax, number; ret
        "x86" => [&[0xb8][..], &low, &[0xc3]].concat(),
        // ldr x0, +8; ret; the number, sign-extended
        "aarch64" => {
            let words = [0x5800_0040_u32.to_le_bytes(), 0xd65f_03c0_u32.to_le_bytes()].concat();
            [&words[..], &i64::from(number).to_le_bytes()].concat()
        }
        // ldr r0, [pc] (two instructions on); bx lr; the number
        "arm" => [0xe59f_0000_u32.to_le_bytes(), 0xe12f_ff1e_u32.to_le_bytes(), low].concat(),
        // auipc a0, 0; lw a0, 12(a0); ret; the number
        "riscv64" => {
            [[0x0000_0517_u32, 0x00c5_2503, 0x0000_8067].map(u32::to_le_bytes).concat(), low.into()].concat()
        }
        // pcaddi a0, 3; ld.w a0, a0, 0; jr ra; the number
        "loongarch64" => {
            [[0x1800_0064_u32, 0x2880_0084, 0x4c00_0020].map(u32::to_le_bytes).concat(), low.into()].concat()
        }
        // lis r3, high half; ori r3, r3, low half; blr
        "powerpc64" => {
            let [high, low] = [number as u32 >> 16, number as u32 & 0xffff];
            [0x3c60_0000 | high, 0x6063_0000 | low, 0x4e80_0020].map(u32::to_le_bytes).concat()
        }
        // lgfi %r2, number; br %r14
        "s390x" => [&[0xc0, 0x21][..], &number.to_be_bytes(), &[0x07, 0xfe]].concat(),
        _ => return None,
    })
}

/// Code of a 32-bit function that writes so many seconds at the address in its first or second
/// argument; `None` on 64-bit architectures.
fn writing_seconds(abi: &Abi, argument: u8, seconds: i32) -> Option<Vec<u8>> {
    let seconds = seconds.to_le_bytes();
    Some(match abi.name {
        // mov eax, [esp + 4 or 8]; mov dword [eax], seconds; mov dword [eax + 4], 0; xor eax, eax; ret
        "x86" => {
            let address = [0x8b, 0x44, 0x24, 4 + 4 * argument, 0xc7, 0];
            [&address[..], &seconds, &[0xc7, 0x40, 4, 0, 0, 0, 0, 0x31, 0xc0, 0xc3]].concat()
        }
        // mov r3, r0 or r1; mov r0, #0; str r0, [r3, #4]; ldr r2, [pc, #4]; str r2, [r3]; bx lr
        "arm" => {
            let argument = 0xe1a0_3000_u32 | u32::from(argument);
            let words = [argument, 0xe3a0_0000, 0xe583_0004, 0xe59f_2004, 0xe583_2000, 0xe12f_ff1e];
            [words.map(u32::to_le_bytes).concat(), seconds.to_vec()].concat()
        }
        _ => return None,
    })
}

/// Maps an image whose symbols all have this code, and says that it is this process's vDSO.
fn give(machine: u16, class: u8, symbols: Vec<Sym<'_>>, code: &[u8]) {
    let (wide, wide_hash, big_endian) = (class == 2, machine == 22, cfg!(target_endian = "big"));
    let mut built = Spec { wide, machine, symbols, wide_hash, big_endian, ..Spec::default() }.build();
    for symbol in built.symbols.clone() {
        let at = usize::try_from(symbol.st_value()).unwrap();
        built.bytes[at..at + code.len()].copy_from_slice(code);
    }
    test_support::rseq::unregister();
    let size = NonZeroUsize::new(built.bytes.len()).unwrap();
    let writable = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: the kernel chooses a place where nothing is.
    let base = unsafe { mmap_anonymous(None, size, writable, MapFlags::MAP_PRIVATE) }.unwrap();
    // SAFETY: the pages are new, and as large as the bytes.
    unsafe { base.cast().copy_from_nonoverlapping((&built.bytes[0]).into(), size.get()) };
    // SAFETY: nothing else uses the pages.
    unsafe { mprotect(base, size.get(), ProtFlags::PROT_READ | ProtFlags::PROT_EXEC) }.unwrap();
    // SAFETY: an image is mapped there, and stays.
    unsafe { vdso_time::init(base.as_ptr().cast_const().cast()) };
}

/// Every symbol that the functions have as a candidate.
fn candidates(abi: &Abi, functions: &[&Function]) -> Vec<Sym<'static>> {
    let names = functions.iter().flat_map(|function| function.candidates).map(|candidate| candidate.name);
    let names: std::collections::BTreeSet<_> = names.collect();
    names.into_iter().map(|name| Sym::func(name, abi.version)).collect()
}

fn all(abi: &'static Abi) -> [&'static Function; 5] {
    abi.functions().map(|(_, function)| function)
}

/// Does `work` in a child whose vDSO returns `number` from every function.
fn where_all_return(number: i32, work: impl Fn(&'static Abi)) {
    child::forked(|| match NATIVE.map(|abi| (abi, returning(abi, number))) {
        Some((abi, Some(code))) => {
            give(abi.machine, abi.class, candidates(abi, &all(abi)), &code);
            work(abi);
        }
        _ => not_run("no code for this architecture"),
    });
}

/// A number that is no errno is a refusal too. `time` has no test on its result: a function that
/// returned an error is not used.
#[test]
fn a_refusal_other_than_einval_is_asked_of_the_kernel() {
    for number in [-libc::ENOSYS, -libc::EPERM, -1, -4095, 1] {
        where_all_return(number, |abi| {
            for function in &test_support::FUNCTIONS {
                // The code for `time` returns a time.
                let is_believed = function.name == "time" && number == 1;
                if !is_believed || abi.time.candidates[0].shape != Shape::Time64 {
                    function.clocks().iter().for_each(|clock| function.assert_right(&PATHS[0], *clock));
                }
            }
            assert_eq!(vdso_time::clock_gettime(ClockId::from_raw(99)), Err(Errno::EINVAL));
        });
    }
}

/// Fills the stack below this frame with a pattern, which uninitialised variables of a later call
/// show.
#[inline(never)]
fn poison_the_stack() {
    std::hint::black_box([0xaa_u8; 16 * 1024]);
}

/// A vDSO that answers 0 and writes nothing: the answer is 0, and nothing of the stack reaches the
/// caller.
#[test]
fn an_answer_that_was_not_written_is_zero() {
    fn read<T: Debug + PartialEq>(function: impl Fn() -> T, zero: &T) {
        poison_the_stack();
        assert_eq!(function(), *zero);
    }
    where_all_return(0, |abi| {
        assert_eq!(time(), 0);
        for _ in 0..2 {
            let zero = Ok(Timespec::default());
            read(|| vdso_time::clock_gettime(ClockId::MONOTONIC), &zero);
            read(|| vdso_time::clock_getres(ClockId::MONOTONIC), &zero);
            read(vdso_time::gettimeofday, &Ok(Timeval::default()));
            if !abi.getcpu.candidates.is_empty() {
                read(|| vdso_time::getcpu().map(|here| (here.cpu, here.node)), &Ok((0, 0)));
            }
        }
    });
}

/// After February 2106 the seconds of a 32-bit symbol count from 1970 again, and after January 2038
/// they are negative. Then the 64-bit system call is asked.
#[test]
fn a_wall_clock_time_that_may_have_wrapped_is_asked_of_the_kernel() {
    // 2110-01-01 and 2040-01-01 in seconds since the Epoch, as 32 bits have them.
    for seconds in [4_418_064_000_i64, 2_208_988_800].map(|seconds| seconds as i32) {
        child::forked(|| {
            let Some((abi, Some(code))) = NATIVE.map(|abi| (abi, writing_seconds(abi, 1, seconds))) else {
                return not_run("no 32-bit symbols");
            };
            give(abi.machine, abi.class, vec![Sym::func("__vdso_clock_gettime", abi.version)], &code);
            let Route::Vdso { symbol, .. } = routes().clock_gettime else { panic!("{}", routes()) };
            assert_eq!(symbol, "__vdso_clock_gettime");
            for clock in [ClockId::REALTIME, ClockId::REALTIME_COARSE, ClockId::TAI] {
                let kernel = || oracle::clock_gettime(clock.as_raw());
                assert_bracketed("the wall clock", true, kernel, || vdso_time::clock_gettime(clock));
            }
            assert_bracketed("time", true, oracle::seconds, || Ok(time()));
            // A clock that does not count from the Epoch is believed.
            let uptime = vdso_time::clock_gettime(ClockId::MONOTONIC).unwrap().tv_sec;
            let kernel = syscall::clock_gettime(ClockId::MONOTONIC).unwrap().tv_sec;
            assert_eq!(uptime, if seconds >= 0 { i64::from(seconds) } else { kernel });
        });
    }
}

/// The same for 32-bit symbols that have no clock. Between 2026 and 2038 they are believed.
#[test]
fn a_32_bit_time_is_believed_until_2038() {
    const NOW: i64 = 1_900_000_000; // in 2030
    for (symbol, seconds) in ["__vdso_time", "__vdso_gettimeofday"]
        .into_iter()
        .flat_map(|symbol| [NOW, 4_418_064_000, 2_208_988_800].map(|seconds| (symbol, seconds)))
    {
        child::forked(|| {
            let Some((abi, Some(writing))) = NATIVE.map(|abi| (abi, writing_seconds(abi, 0, seconds as i32)))
            else {
                return not_run("no 32-bit symbols");
            };
            let is_time = symbol == "__vdso_time";
            let code = if is_time { returning(abi, seconds as i32).unwrap() } else { writing };
            give(abi.machine, abi.class, vec![Sym::func(symbol, abi.version)], &code);
            let route = if is_time { routes().time } else { routes().gettimeofday };
            if !matches!(route, Route::Vdso { .. }) {
                return not_run("this architecture's vDSO has no such symbol");
            }
            let read = || if is_time { time() } else { vdso_time::gettimeofday().unwrap().tv_sec };
            if seconds == NOW {
                assert_eq!(read(), NOW, "{symbol}");
            } else {
                assert_bracketed(symbol, true, oracle::seconds, || Ok(read()));
            }
        });
    }
}

#[test]
fn einval_is_final() {
    where_all_return(-libc::EINVAL, |_| {
        assert_eq!(vdso_time::clock_gettime(ClockId::MONOTONIC), Err(Errno::EINVAL));
        assert_eq!(vdso_time::clock_getres(ClockId::MONOTONIC), Err(Errno::EINVAL));
        // The caller did not choose the clocks of these: another call answers.
        assert!(vdso_time::gettimeofday().is_ok());
        assert!(time() > 1_700_000_000 && try_time().is_ok());
    });
}

/// The slot of a function keeps the vDSO's, whatever that answers, and `time` believes its own.
#[test]
fn the_functions_of_the_image_are_the_ones_called() {
    where_all_return(12345, |abi| {
        if abi.time.candidates[0].shape == Shape::Time64 {
            assert_eq!(time(), 12345);
        }
        let _ = vdso_time::clock_gettime(ClockId::MONOTONIC);
        for (function, (_, route)) in all(abi).into_iter().zip(routes().functions()) {
            match (function.candidates.first(), route) {
                (Some(first), Route::Vdso { symbol, .. }) => assert_eq!(symbol, first.name),
                (None, Route::Syscall { .. }) => {}
                (first, route) => panic!("{first:?} {route:?}"),
            }
        }
    });
}

/// i386's vDSO has a function that enters the kernel. Elsewhere, and in other images, a symbol of
/// that name is not called.
#[test]
fn only_the_entry_of_an_i386_image_makes_system_calls() {
    let i386 = NATIVE.is_some_and(|abi| abi.name == "x86");
    for (state, version, foreign, is_called) in [
        ("as the kernel has it", "LINUX_2.5", false, i386),
        ("of another version", "LINUX_2.6", false, false),
        ("in an image of another architecture", "LINUX_2.5", true, false),
    ] {
        child::forked(|| {
            let Some((abi, Some(code))) = NATIVE.map(|abi| (abi, returning(abi, -libc::ENOTTY))) else {
                return not_run("no code for this architecture");
            };
            let machine = if foreign { 0 } else { abi.machine };
            give(machine, abi.class, vec![Sym::func("__kernel_vsyscall", version)], &code);
            // The image has not been looked at yet.
            assert!(syscall::getcpu().is_ok(), "{state}");
            let answers = [vdso_time::getcpu().err(), syscall::getcpu().err()];
            let expected = is_called.then(|| Errno::from_raw_os_error(libc::ENOTTY).unwrap());
            assert_eq!(answers, [expected; 2], "{state}");
        });
    }
}
