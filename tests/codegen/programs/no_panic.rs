//! A program that calls everything of the crate that a freestanding program may rely on, and
//! formats nothing. Its panic handler calls a missing function, so it links only if it cannot
//! panic.
//!
//! `tests/codegen/no_panic.rs` builds it, and once more for each value of the cfg `panics`, which
//! adds a call that may panic.

#![no_std]
#![no_main]

use core::ffi::c_int;
use core::hint::black_box;
use core::panic::PanicInfo;
use core::ptr;
use core::time::Duration;

use vdso_time::elf::Image;
use vdso_time::vdso::Vdso;
use vdso_time::{
    Boottime, ClockId, Instant, Monotonic, MonotonicCoarse, MonotonicRaw, ProcessCpuTime, Realtime,
    RealtimeCoarse, Routes, SystemTime, SystemTimeSource, Tai, ThreadCpuTime, Timespec, UNIX_EPOCH,
    syscall,
};

unsafe extern "C" {
    fn this_program_can_panic() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: no function has this name, so the program does not link if it can call it.
    unsafe { this_program_can_panic() }
}

/// Hides the arguments and the use of each answer from the compiler.
#[unsafe(no_mangle)]
extern "C" fn main(number: c_int, words: *const *const u8) -> c_int {
    let clock = ClockId::from_raw(number);
    black_box((
        ClockId::aux(number as u8),
        ClockId::process_cpu(number as u32),
        ClockId::thread_cpu(number as u32),
    ));
    black_box((ClockId::from_fd(number), clock.as_raw()));
    // SAFETY: null is always allowed.
    black_box(unsafe { vdso_time::vdso::set_address(ptr::null()) }.ok());
    vdso_time::warm_up();
    black_box(vdso_time::time());
    black_box(vdso_time::try_time().ok());
    black_box(vdso_time::gettimeofday().ok());
    black_box(vdso_time::clock_gettime(clock).ok());
    black_box(vdso_time::clock_getres(clock).ok());
    black_box(vdso_time::getcpu().ok());
    black_box(syscall::try_time().ok());
    black_box(syscall::gettimeofday().ok());
    black_box(syscall::clock_gettime(clock).ok());
    black_box(syscall::clock_getres(clock).ok());
    black_box(syscall::getcpu().ok());
    black_box(vdso_time::routes());
    black_box(vdso_time::read_cost(clock));
    black_box(vdso_time::explain(clock));

    instants(number);
    timespecs(number);
    if let Ok(vdso) = Vdso::locate() {
        // SAFETY: the vDSO is mapped there, and stays.
        black_box(unsafe { Vdso::from_ptr(vdso.base()) }.is_ok());
        black_box(vdso.symbol_at(words.addr()).map(|symbol| symbol.name()));
        black_box(vdso.symbol_address(name(&vdso.image()), Some(name(&vdso.image()))));
        for (symbol, address) in vdso.symbols() {
            black_box((address, symbol.version(), symbol.size()));
        }
        walk(&vdso.image());
    }
    #[cfg(panics = "Instant::now")]
    black_box(Instant::now());
    #[cfg(panics = "Instant::elapsed")]
    black_box(Instant::try_now().map_or(Duration::ZERO, |start| start.elapsed()));
    #[cfg(panics = "SystemTime::now")]
    black_box(SystemTime::now());
    #[cfg(panics = "SystemTime::elapsed")]
    black_box(UNIX_EPOCH.elapsed().ok());
    #[cfg(panics = "Instant + Duration")]
    black_box(
        Instant::try_now()
            .map(|start| start + Duration::from_secs(number as u64))
            .ok(),
    );
    #[cfg(panics = "SystemTime - Duration")]
    black_box(UNIX_EPOCH - Duration::from_secs(number as u64));
    0
}

fn instants(number: c_int) {
    let wait = Duration::from_secs(number as u64);
    let Ok(start) = Instant::try_now() else {
        return;
    };
    let other = Instant::from_nanos(i64::from(number));
    black_box((
        start - other,
        start.checked_add(wait),
        start.checked_sub(wait),
    ));
    black_box((
        start.duration_since(other),
        start.saturating_duration_since(other),
    ));
    black_box((MonotonicRaw::try_now().ok(), Boottime::try_now().ok()));
    black_box((
        ProcessCpuTime::try_now().ok(),
        ThreadCpuTime::try_now().ok(),
    ));
    black_box(MonotonicCoarse::try_now().map(<Instant>::from).ok());
    let Ok(start) = SystemTime::try_now() else {
        return;
    };
    black_box((
        start.checked_add(wait),
        start.checked_sub(wait),
        start.duration_since(UNIX_EPOCH).ok(),
    ));
    black_box((Timespec::from(start), start.as_nanos()));
    let number = i64::from(number);
    black_box((
        SystemTime::from_secs(number),
        SystemTime::from_millis(number).subsec_millis(),
        SystemTime::from_micros(number).subsec_micros(),
    ));
    black_box(SystemTimeSource::try_now(&Realtime).ok());
    black_box((
        Realtime::try_now().ok(),
        RealtimeCoarse::try_now().ok(),
        Tai::try_now().ok(),
    ));
}

fn timespecs(number: c_int) {
    let time = Timespec {
        tv_sec: i64::from(number),
        tv_nsec: black_box(i64::from(number)),
    };
    black_box(Timespec::from_nanos(black_box(time.as_nanos() as i64)));
    black_box(time.checked_duration_since(Timespec::default()));
    black_box(time < Timespec::from_nanos(5));
    black_box(SystemTime::<Tai>::try_from(time).ok());
    black_box(Instant::<Monotonic>::try_from(time).ok());
    if let Ok(duration) = Duration::try_from(time) {
        black_box(Timespec::try_from(duration).ok());
    }
}

/// Returns a name that the compiler does not know.
fn name<'a>(image: &Image<'a>) -> &'a str {
    image
        .symbols()
        .next()
        .and_then(|symbol| symbol.name().to_str().ok())
        .unwrap_or_default()
}

/// Bytes are walked that could be anything's.
fn walk(image: &Image<'_>) {
    black_box(image.machine());
    for symbol in image.symbols() {
        black_box(Image::extent(symbol.name().to_bytes()).ok());
        if let Ok(image) = Image::parse(symbol.name().to_bytes()) {
            black_box(image.symbols().count());
            black_box(
                image
                    .symbol(name(&image), Some(name(&image)))
                    .map(|symbol| symbol.value()),
            );
            black_box(Routes::of_image(&image));
        }
    }
}
