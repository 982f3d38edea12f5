//! The questions that this machine's [`Source`](crate::engine::source::Source) asks Linux.

#![allow(unsafe_code, reason = "prctl(2) is called")]

use vdso_time::__private::{auxval, checked as call, read_file};
use vdso_time::{ClockId, Route, read_cost, routes};

use crate::engine::source::Keeper;
use crate::engine::status::Unavailable;
use crate::machine::arch::{Counter as _, CpuCounter};

/// The file with the name of the clock source. Linux has had it since 2.6.19
/// (Documentation/ABI/testing/sysfs-devices-system-clocksource).
const CURRENT: &core::ffi::CStr =
    c"/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Returns whether a read of the CPU's counter would send SIGSEGV to this thread, according to
/// `PR_GET_TSC` of prctl(2). A call of a vDSO function that reads the counter would do the same.
fn is_denied() -> bool {
    const PR_GET_TSC: usize = 25;
    const PR_TSC_SIGSEGV: u32 = 2;
    let Some(prctl) = CpuCounter::PRCTL else {
        return false;
    };
    let mut state: u32 = 0;
    let args = [PR_GET_TSC, (&raw mut state).expose_provenance(), 0, 0, 0];
    // SAFETY: the kernel writes one `int` to `state`.
    unsafe { call(prctl, args) }.is_ok() && state == PR_TSC_SIGSEGV
}

/// Returns who maintains the clock source that is derived from the counter, or why the counter must
/// not be used now.
///
/// This function does not check whether the CPUs' counters agree. On x86 the kernel checks that: if
/// the counters do not agree, it marks the TSC unstable and changes to another clock source. On the
/// other architectures the kernel relies on the hardware, and so does this crate.
pub(super) fn detect(trusts_hypervisor: bool) -> Result<Keeper, Unavailable> {
    // The counter is not used without 64-bit atomics, because the clock keeps its high-water mark
    // (engine/high_water.rs) in a 64-bit atomic. A program that is compiled for ARMv5 has none, on
    // whatever CPU it runs.
    #[allow(clippy::const_is_empty, reason = "it is empty on other architectures")]
    let has_source = !CpuCounter::CLOCK_SOURCES.is_empty();
    let is_supported = cfg!(target_has_atomic = "64") && has_source;
    if !is_supported || !matches!(routes().clock_gettime, Route::Vdso { .. }) {
        return Err(Unavailable::NoCounter);
    }
    if is_denied() {
        return Err(Unavailable::Denied);
    }
    let keeper = keeper()?;
    // QEMU does not emulate an invariant TSC, so tests that run in QEMU set the cfg
    // `vdso_time_assume_invariant`, with which every TSC counts as invariant. With the cfg
    // `vdso_time_not_invariant`, no TSC does.
    let is_invariant = (CpuCounter::is_invariant() || cfg!(vdso_time_assume_invariant))
        && !cfg!(vdso_time_not_invariant);
    keeper.check_rate(is_invariant, trusts_hypervisor)?;
    keeper.check_cost(read_cost(ClockId::MONOTONIC))?;
    CpuCounter::detect(auxval);
    Ok(keeper)
}

/// Reads the name of the kernel's clock source. Returns who maintains the clock source, if it is
/// derived from the counter.
fn keeper() -> Result<Keeper, Unavailable> {
    let mut words = [0; 8];
    read_file(CURRENT, &mut words).map_err(|_| Unavailable::ClockSourceUnknown)?;
    let name = words
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .take_while(|&byte| byte != b'\n');
    let is_one_of = |sources: &[&str]| sources.iter().any(|source| source.bytes().eq(name.clone()));
    if is_one_of(CpuCounter::PARAVIRTUAL) {
        return Ok(Keeper::Hypervisor);
    }
    if is_one_of(CpuCounter::CLOCK_SOURCES) {
        return Ok(Keeper::Kernel);
    }
    Err(Unavailable::ClockSource)
}
