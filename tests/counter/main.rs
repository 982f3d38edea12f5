//! The counter clock on the machine's own counter.
//!
//! The rule of this program: no test reads the counter clock in its own process. Each read is made
//! in a forked child ([`test_support::child`]). So the clock is not calibrated there, and no thread
//! of another test makes a segment meanwhile.

#![cfg(any(target_os = "linux", target_os = "android"))]

mod clock;
mod namespace;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod renewal;
mod status;

use std::fs;
use std::time::{Duration, Instant};

use test_support::{not_run_here, oracle};
use vdso_time::arch::NATIVE;
use vdso_time::counter::{self, State, Status};
use vdso_time::{Clock, Counter, Route, routes};

/// What the kernel reads its time from.
fn clock_source() -> Option<String> {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(file).ok().map(|name| name.trim().to_owned())
}

/// Whether the counter's rate never changes: what the kernel says, or, where /proc is not mounted,
/// the CPU itself.
fn is_invariant() -> bool {
    let Ok(flags) = fs::read_to_string("/proc/cpuinfo") else { return is_invariant_by_cpu() };
    let has = |flag| flags.split_ascii_whitespace().any(|word| word == flag);
    has("constant_tsc") && has("nonstop_tsc")
}

/// "Invariant TSC" of the vendors' manuals: leaf 0x80000007, EDX bit 8.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn is_invariant_by_cpu() -> bool {
    #[cfg(target_arch = "x86")]
    use std::arch::x86::__cpuid;
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::__cpuid;
    #[allow(unsafe_code, unused_unsafe, reason = "a safe function since Rust 1.94")]
    // SAFETY: a CPU with a counter has the instruction.
    let leaf = |number| unsafe { __cpuid(number) };
    leaf(0x8000_0000).eax >= 0x8000_0007 && leaf(0x8000_0007).edx & 1 << 8 != 0
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn is_invariant_by_cpu() -> bool {
    false // it is not asked
}

/// The status after calibration, by what the kernel says of itself.
fn expected() -> Status {
    let (sources, is_invariant): (&[&str], _) = match NATIVE.map(|abi| abi.name) {
        Some("x86" | "x86_64") => (&["tsc", "tsc-early"], is_invariant() || cfg!(vdso_time_assume_invariant)),
        Some(_) => (&["arch_sys_counter"], true),
        None => return Status::NoCounter,
    };
    match clock_source() {
        _ if cfg!(not(target_has_atomic = "64")) => Status::NoCounter,
        _ if !matches!(routes().clock_gettime, Route::Vdso { .. }) => Status::NoCounter,
        None => Status::Unknown,
        Some(name) if !sources.contains(&name.as_str()) => Status::ClockSource,
        Some(_) if !is_invariant => Status::NotInvariant,
        Some(_) => Status::Used,
    }
}

/// Reads until the status is as expected, for as long as a calibration may take on a busy machine.
fn settle() -> State {
    let start = Instant::now();
    let expected = expected();
    loop {
        let _ = counter::monotonic();
        let state = counter::state();
        if state.status == expected || start.elapsed() > Duration::from_secs(10) {
            return state;
        }
    }
}

/// Whether the counter is used after calibration; says so if not.
fn is_used() -> bool {
    let status = settle().status;
    if status != Status::Used {
        not_run_here("counter", format!("the counter is not used: {status}"));
    }
    status == Status::Used
}

/// Nanoseconds of the kernel's clock.
fn kernel(id: i32) -> i64 {
    oracle::clock_gettime(id).unwrap().as_nanos()
}

/// Whether a read lies between the kernel's two, within the error bound and some slack. If not,
/// says what was read.
fn read_near(id: i32, slack: i64, read: impl Fn() -> i64) -> Result<i64, String> {
    // Each bound is of its own moment: the segment may end meanwhile, or another one begin.
    let bound = counter::error_bound();
    let (before, now, after) = (kernel(id), read(), kernel(id));
    // A clock that waits for the kernel's comes nearer to it by as much time as has passed since.
    let bound = bound.max(counter::error_bound()) as i64 + slack + (kernel(id) - before).max(0);
    let is_near = before - bound <= now && now <= after + bound;
    if is_near { Ok(now) } else { Err(format!("{before} <= {now} <= {after}, {bound}")) }
}

/// Fails unless each of the clock's reads is near the kernel's clock.
#[track_caller]
fn assert_near() {
    let monotonic: [fn() -> i64; 3] = [
        || counter::monotonic() as i64,
        || counter::monotonic_ordered() as i64,
        || Counter::now().as_nanos(),
    ];
    for read in monotonic {
        read_near(libc::CLOCK_MONOTONIC, 30, read).unwrap();
    }
    read_near(libc::CLOCK_REALTIME, 30, counter::realtime).unwrap();
}
