//! adjtimex(2) without changes: what the kernel knows of the error of its wall clock.
//!
//! `struct timex` is in include/uapi/linux/timex.h. Its first 12 members take one number each, also
//! the `int`s, because of their padding.

use vdso_time::__private::syscall;
use vdso_time::{ClockId, Errno};

use crate::engine::source::Timex;
use crate::machine::arch::{Counter as _, CpuCounter};

/// Reads the kernel's wall clock and its error.
pub(super) fn read() -> Result<Timex, Errno> {
    /// `clock_adjtime64(2)` of every 32-bit architecture, since Linux 5.1.
    const CLOCK_ADJTIME64: u32 = 405;
    if cfg!(target_pointer_width = "64") {
        return call::<i64, 14>(CpuCounter::ADJTIMEX, None);
    }
    // Sandboxes permit this call, so it comes first. Its times end in January 2038.
    match call::<i32, 20>(CpuCounter::ADJTIMEX, None) {
        Ok(timex) if timex.realtime >= 0 => Ok(timex),
        Err(error) if error != Errno::ENOSYS => Err(error),
        _ => call::<i64, 14>(CLOCK_ADJTIME64, Some(ClockId::REALTIME)),
    }
}

/// `struct timex`: the numbers that are read, and the others.
#[repr(C)]
struct Numbers<N, const OTHERS: usize>([N; 12], [N; OTHERS]);

/// Makes one system call. Its last argument is a `struct timex` of these numbers: an `i64`, or the
/// 32-bit `long` of old system calls.
fn call<N, const OTHERS: usize>(number: u32, clock: Option<ClockId>) -> Result<Timex, Errno>
where
    N: Copy + Default + Into<i64>,
{
    const TIME_ERROR: usize = 5;
    const STA_PPSTIME: i32 = 0x4;
    const STA_INS: i32 = 0x10;
    const STA_DEL: i32 = 0x20;
    const STA_UNSYNC: i32 = 0x40;
    const STA_NANO: i32 = 0x2000;
    /// `tick` without a slew, in microseconds, and the slew by one more of these.
    const TICK: i64 = 10_000;
    const PPB: u64 = 100_000;
    // `modes` is 0, so the call changes nothing and needs no privilege.
    let mut numbers = Numbers([N::default(); 12], [N::default(); OTHERS]);
    let out = (&raw mut numbers).expose_provenance();
    let args = clock.map_or([out, 0, 0, 0, 0], |clock| [clock.as_raw() as usize, out, 0, 0, 0]);
    // SAFETY: the kernel writes a `struct timex`, whose size `read` knows, to `numbers`.
    let state = unsafe { syscall(number, args) }?;
    let numbers = numbers.0.map(N::into);
    let [_, offset, freq, max_error, esterror, status, _, _, _, seconds, fraction, tick] = numbers;
    // `status` is the `int` in the first four bytes.
    let is_high = cfg!(target_endian = "big") && size_of::<N>() == 8;
    let status = if is_high { status >> 32 } else { status } as i32;
    let unit = if status & STA_NANO == 0 { 1000 } else { 1 };
    let whole = seconds.saturating_mul(1_000_000_000);
    Ok(Timex {
        realtime: whole.saturating_add(fraction.saturating_mul(unit)),
        max_error: max_error.saturating_mul(1000).max(0) as u64,
        pending: offset.saturating_mul(unit).unsigned_abs(),
        written: [esterror as u64, freq as u64],
        slew: tick.abs_diff(TICK).saturating_mul(PPB),
        is_synchronized: state != TIME_ERROR && status & STA_UNSYNC == 0,
        has_leap: status & (STA_INS | STA_DEL) != 0,
        has_pps: status & STA_PPSTIME != 0,
    })
}
