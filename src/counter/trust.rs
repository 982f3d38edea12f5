//! The kernel's verdict on the counter.

use crate::linux::native::{self, ABI};
use crate::linux::{process, routes};

use super::status::Status;

/// The clock source by which the kernel keeps the time (Documentation/timers/timekeeping.rst, and the file's own
/// Documentation/ABI/testing/sysfs-devices-system-clocksource, since Linux 2.6.19).
const CURRENT: &core::ffi::CStr = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Whether this thread may read the counter, the counter's rate is its own, and the kernel keeps the time by it.
///
/// That CPUs agree is a part of the kernel's verdict: it marks the TSC unstable where they do not.
pub(super) fn check() -> Result<(), Status> {
    // The floor is one 64-bit atomic. A program for ARMv5 has none, though the CPU under it may have the counter.
    if cfg!(not(target_has_atomic = "64")) || ABI.clock_sources.is_empty() || !routes::are_symbols().0 {
        return Err(Status::NoCounter);
    }
    if process::is_counter_denied() {
        return Err(Status::Denied);
    }
    let mut name = [[0; 2]; 4];
    process::read_file(CURRENT, &mut name).map_err(|_| Status::Unknown)?;
    let name =
        name.as_flattened().iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != b'\n');
    if !ABI.clock_sources.iter().any(|source| source.bytes().eq(name.clone())) {
        return Err(Status::ClockSource);
    }
    // QEMU emulates no invariant TSC: with this cfg it is taken for one, in tests.
    let is_invariant = native::counter::is_invariant() || cfg!(vdso_time_assume_invariant);
    if is_invariant { Ok(()) } else { Err(Status::NotInvariant) }
}
