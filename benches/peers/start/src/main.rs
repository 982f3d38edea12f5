//! Reads a clock once: the one of the feature with which it is built. With an argument it prints what that read took, in nanoseconds, and
//! the page faults in it; with `again`, after std has read the time.

use std::arch::asm;
use std::hint::black_box;

fn keep<T>(answer: T) {
    black_box(answer);
}

#[inline(never)]
fn read() {
    #[cfg(feature = "clocksource")]
    keep(clocksource::precise::Instant::now());
    #[cfg(feature = "coarsetime")]
    keep(coarsetime::Instant::now());
    #[cfg(feature = "counter")]
    keep(vdso_time::counter::monotonic());
    #[cfg(feature = "fastant")]
    keep(fastant::Instant::now());
    #[cfg(feature = "libc")]
    {
        let mut time = std::mem::MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: libc writes the time there.
        black_box(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr()) });
    }
    #[cfg(feature = "minstant")]
    keep(minstant::Instant::now());
    #[cfg(feature = "quanta")]
    keep(quanta::Instant::now());
    #[cfg(feature = "rustix")]
    keep(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic));
    #[cfg(feature = "std")]
    keep(std::time::Instant::now());
    #[cfg(all(feature = "vdso-time", not(feature = "counter")))]
    keep(vdso_time::Instant::now());
}

/// A system call with two arguments, without any library's help.
#[cfg(target_arch = "x86_64")]
fn system_call(number: usize, first: usize, place: *mut [i64; 18]) {
    // SAFETY: the two that are made here write to the place, which is large enough for either.
    unsafe {
        asm!("syscall", inlateout("rax") number => _, in("rdi") first, in("rsi") place, out("rcx") _, out("r11") _, options(nostack));
    }
}

#[cfg(target_arch = "aarch64")]
fn system_call(number: usize, first: usize, place: *mut [i64; 18]) {
    // SAFETY: the two that are made here write to the place, which is large enough for either.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") first => _, in("x1") place, options(nostack));
    }
}

const CLOCK_GETTIME: usize = if cfg!(target_arch = "x86_64") { 228 } else { 113 };
const GETRUSAGE: usize = if cfg!(target_arch = "x86_64") { 98 } else { 165 };

/// `CLOCK_MONOTONIC_RAW` by the kernel: the vDSO is not touched before its time.
fn nanos() -> i64 {
    let mut place = [0; 18];
    system_call(CLOCK_GETTIME, 4, &raw mut place);
    place[0] * 1_000_000_000 + place[1]
}

/// The faults of this process that needed no disk.
fn faults() -> i64 {
    let mut place = [0; 18];
    system_call(GETRUSAGE, 0, &raw mut place);
    place[8]
}

fn main() {
    let Some(argument) = std::env::args_os().nth(1) else { return read() };
    if argument == "again" {
        keep(std::time::Instant::now());
    }
    // What the measuring takes, subtracted.
    let nothing = (0..15).map(|_| -nanos() + nanos()).min().unwrap_or(0);
    let (before, start) = (faults(), nanos());
    read();
    let taken = nanos() - start - nothing;
    println!("{taken}\t{}", faults() - before);
}
