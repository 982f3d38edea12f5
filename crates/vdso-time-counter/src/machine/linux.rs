//! What this machine's [`Source`](crate::engine::source::Source) asks of Linux.

#![allow(unsafe_code, reason = "prctl(2) is called")]

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use vdso_time::__private::{auxval, read_file, syscall as call};
use vdso_time::{ClockId, ReadCost, Route, read_cost, routes};

use crate::engine::status::Unavailable;
use crate::machine::TRUSTS_HYPERVISOR;
use crate::machine::arch::{Counter as _, CpuCounter};

/// Since Linux 2.6.19 (Documentation/ABI/testing/sysfs-devices-system-clocksource).
const CURRENT: &core::ffi::CStr =
    c"/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Whether [`detect`] found a clock source that the hypervisor keeps.
static IS_PARAVIRTUAL: AtomicBool = AtomicBool::new(false);

pub(super) fn is_paravirtual() -> bool {
    IS_PARAVIRTUAL.load(Relaxed)
}

/// Returns whether this thread must not read the counter that the vDSO reads: `PR_GET_TSC` of
/// prctl(2).
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

/// Returns why the counter must not be used now. A kernel that keeps its time by it marks the TSC
/// unstable if the CPUs do not agree.
pub(super) fn detect() -> Result<(), Unavailable> {
    // The high-water mark is a 64-bit atomic, which a program for ARMv5 lacks on every CPU.
    let sources = CpuCounter::CLOCK_SOURCES;
    let is_readable = cfg!(target_has_atomic = "64") && !sources.is_empty();
    if !is_readable || !matches!(routes().clock_gettime, Route::Vdso { .. }) {
        return Err(Unavailable::NoCounter);
    }
    if is_denied() {
        return Err(Unavailable::Denied);
    }
    let mut name = [0; 8];
    read_file(CURRENT, &mut name).map_err(|_| Unavailable::ClockSourceUnknown)?;
    let name = name
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .take_while(|&byte| byte != b'\n');
    let is_one_of = |sources: &[&str]| sources.iter().any(|source| source.bytes().eq(name.clone()));
    let is_paravirtual = is_one_of(CpuCounter::PARAVIRTUAL);
    if !is_paravirtual && !is_one_of(sources) {
        return Err(Unavailable::ClockSource);
    }
    // QEMU emulates no invariant TSC. The tests assume one by a cfg, or that there is none.
    let is_invariant = (CpuCounter::is_invariant() || cfg!(vdso_time_assume_invariant))
        && !cfg!(vdso_time_not_invariant);
    if !(is_invariant || is_paravirtual && TRUSTS_HYPERVISOR.load(Relaxed)) {
        return Err(Unavailable::NotInvariant);
    }
    // The clock source keeps its name if the hypervisor takes back the stable bit. Only the time of
    // a read shows it, so there the counter is unavailable when in doubt.
    match read_cost(ClockId::MONOTONIC) {
        ReadCost::SystemCall => return Err(Unavailable::SlowVdso),
        ReadCost::Unknown if is_paravirtual => return Err(Unavailable::SlowVdso),
        _ => {}
    }
    IS_PARAVIRTUAL.store(is_paravirtual, Relaxed);
    CpuCounter::detect(auxval);
    Ok(())
}
