//! What the tests of the counter clock share: what it should come to, and the kernel's clock beside it.

#![allow(dead_code, reason = "no test file uses all of it")]

use std::fs;
use std::time::{Duration, Instant};

use vdso_time::arch::NATIVE;
use vdso_time::counter::{self, State, Status};
use vdso_time::{Route, routes};

use test_support::oracle;

/// Where the kernel says by what it keeps the time.
pub(crate) const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

/// By what the kernel keeps the time.
pub(crate) fn clock_source() -> Option<String> {
    fs::read_to_string(format!("{FOLDER}/current_clocksource")).ok().map(|name| name.trim().to_owned())
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

/// What the status should come to, by what the kernel says of itself.
pub(crate) fn expected() -> Status {
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

/// Reads until the status is what it should come to, for as long as a calibration may take on a busy machine.
pub(crate) fn settle() -> State {
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

/// Nanoseconds of the kernel's clock.
pub(crate) fn kernel(id: libc::clockid_t) -> i64 {
    let now = oracle::clock_gettime(id).unwrap();
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Fails unless a read lies between the kernel's two, give or take the bound.
#[track_caller]
pub(crate) fn assert_near(id: libc::clockid_t, read: impl Fn() -> i64) {
    // Each bound is of its own moment: the line may end in between, or another thread make the next one.
    let bound = counter::error_bound();
    let (before, now, after) = (kernel(id), read(), kernel(id));
    let bound = bound.max(counter::error_bound()) as i64 + 30;
    // A clock that waits for the kernel's comes nearer to it by as much time as has passed since.
    let bound = bound + (kernel(id) - before).max(0);
    assert!(before - bound <= now && now <= after + bound, "{before} <= {now} <= {after}, {bound}");
}
