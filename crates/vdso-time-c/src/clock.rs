//! The functions of the kernel's clocks and of the vDSO.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::fmt::{self, Write as _};
use core::ptr;

use vdso_time::LocateError;
use vdso_time::vdso::{self, Vdso};
use vdso_time::{Cause, ClockId, Errno, ReadCost, Timespec};

use crate::{negative, store, store_time, symbol};

/// The error of a malformed image. vdso-time has no constant for it.
const ENOEXEC: c_int = 8;

/// Seconds and nanoseconds: the kernel's struct __kernel_timespec, 16 bytes on every architecture.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct vdso_timespec {
    /// Seconds.
    pub tv_sec: i64,
    /// Nanoseconds, 0 to 999999999.
    pub tv_nsec: i64,
}

/// Seconds and microseconds, 16 bytes on every architecture.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct vdso_timeval {
    /// Seconds.
    pub tv_sec: i64,
    /// Microseconds, 0 to 999999.
    pub tv_usec: i64,
}

/// The cost of a read of a clock.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum vdso_time_cost {
    /// The measurement is inconclusive, or the clock cannot be read or does not exist.
    Unknown = 0,
    /// A read takes at most two thirds of the time of a system call, so the vDSO reads the clock in
    /// user space.
    FunctionCall = 1,
    /// A read takes about as long as a system call.
    SystemCall = 2,
}

/// Why a read of a clock costs what it costs. The text of vdso_time_explain() says what to do.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum vdso_time_cause {
    /// The vDSO answers in user space.
    Fine = 0,
    /// The measurement was disturbed, so the cause is not known.
    CannotTell = 1,
    /// The process has no vDSO that it can call, or a sandbox kept the first call from finding it.
    NoVdso = 2,
    /// On arm: the kernel found no timer that user space can read, so it blanked the names of the
    /// vDSO's functions.
    BlankedNames = 3,
    /// The vDSO's function is missing, or must not be called.
    NoFunction = 4,
    /// A read fails: the kernel has no such clock, a sandbox denies it, or its driver fails.
    Refused = 5,
    /// This kernel's vDSO does not read this clock. Some clocks are not read by any kernel's vDSO.
    ClockNotServed = 6,
    /// The vDSO cannot read the kernel's clock source.
    ClockSource = 7,
    /// The kernel does not trust the CPU's counter.
    CounterDistrusted = 8,
    /// The clock source does not explain the system call.
    Unexplained = 9,
}

/// Returns the seconds since the Epoch, or a negative error. As with time(2), the result changes
/// only at a timer tick, which comes up to 10 ms after CLOCK_REALTIME has reached the next second.
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_time() -> i64 {
    vdso_time::try_time().unwrap_or_else(|error| negative(error).into())
}

/// Gets the time since the Epoch: gettimeofday(2), without its time zone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_gettimeofday(now: *mut vdso_timeval) -> c_int {
    let time = vdso_time::gettimeofday().map(|time| [time.tv_sec, time.tv_usec]);
    // SAFETY: the caller passes null or an address to write to.
    unsafe { store_time(time, now.cast()) }
}

/// Gets the time of a clock: clock_gettime(2). `clock` is a CLOCK_ constant of time.h, or an id
/// from clock_getcpuclockid(3), from pthread_getcpuclockid(3) or for an open file, such as
/// /dev/ptp0 (clock_gettime(2), "Dynamic clocks").
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_clock_gettime(clock: i32, now: *mut vdso_timespec) -> c_int {
    let time = vdso_time::clock_gettime(ClockId::from_raw(clock)).map(words);
    // SAFETY: the caller passes null or an address to write to.
    unsafe { store_time(time, now.cast()) }
}

/// Gets the resolution of a clock: clock_getres(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_clock_getres(
    clock: i32,
    resolution: *mut vdso_timespec,
) -> c_int {
    let time = vdso_time::clock_getres(ClockId::from_raw(clock)).map(words);
    // SAFETY: the caller passes null or an address to write to.
    unsafe { store_time(time, resolution.cast()) }
}

/// Gets the CPU and the NUMA node of the calling thread: getcpu(2). When the function returns, the
/// thread might already run on another CPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_getcpu(cpu: *mut c_uint, node: *mut c_uint) -> c_int {
    let here = vdso_time::getcpu();
    // SAFETY: the caller passes null or an address to write to.
    unsafe { store(here.map(|here| here.node), node) };
    // SAFETY: the caller passes null or an address to write to.
    unsafe { store(here.map(|here| here.cpu), cpu) }
}

/// Returns 1 if a read of a clock with vdso_time_clock_gettime() was measured to cost at most two
/// thirds of a system call. Returns 0 in all other cases: the read costs about as much as a system
/// call, its cost is unknown, or the clock does not exist.
///
/// vdso_time_read_cost() makes the same measurement, and distinguishes a read that costs as much as
/// a system call from a read whose cost is unknown.
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_is_fast(clock: i32) -> c_int {
    let cost = vdso_time::read_cost(ClockId::from_raw(clock));
    c_int::from(cost == ReadCost::FunctionCall)
}

/// Measures what a read of a clock with vdso_time_clock_gettime() costs.
///
/// VDSO_TIME_COST_SYSTEM_CALL is the normal result for CPU-time clocks. For another clock it
/// usually means that the kernel's clock source is one that the vDSO cannot read, such as hpet. A
/// program can log a warning in that case. vdso_time_routes() does not reveal the problem: it names
/// the vDSO's function as the one that answers, although that function itself makes the system
/// call.
///
/// The result holds for the moment of the call. The function is a timing test, which an interrupt
/// can mislead. For a proof of where the clock is read, run the program vdso-doctor.
///
/// This function makes at most 20 clock_gettime(2) system calls, or 44 in a 32-bit program whose
/// sandbox denies clock_gettime64(2). Call it before the program enters a sandbox that kills the
/// process for such a call. In a sandbox that denies the calls with an error, the cost is
/// unknown.
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_read_cost(clock: i32) -> vdso_time_cost {
    match vdso_time::read_cost(ClockId::from_raw(clock)) {
        ReadCost::FunctionCall => vdso_time_cost::FunctionCall,
        ReadCost::SystemCall => vdso_time_cost::SystemCall,
        _ => vdso_time_cost::Unknown,
    }
}

/// Explains why a read of a clock with vdso_time_clock_gettime() costs what it costs. Returns the
/// cause, and writes a text for a log. The text states the cause and says what to do about it. At
/// most `size` bytes are written, including the final NUL; 256 are enough.
///
/// A program that calls this function needs no list of slow clock sources: the function measures
/// the cost, and uses the name of the clock source only to explain that cost.
///
/// This function makes at most 40 clock_gettime(2) system calls, or 91 in a 32-bit program whose
/// sandbox denies clock_gettime64(2). It opens two files of /sys if the vDSO's reads enter the
/// kernel. Call it before the program enters a sandbox.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_explain(
    clock: i32,
    text: *mut c_char,
    size: usize,
) -> vdso_time_cause {
    let cause = vdso_time::explain(ClockId::from_raw(clock));
    // SAFETY: the caller passes null or room for `size` bytes.
    unsafe { write_text(&cause, text, size) };
    match cause {
        Cause::Fine => vdso_time_cause::Fine,
        Cause::NoVdso => vdso_time_cause::NoVdso,
        Cause::BlankedNames => vdso_time_cause::BlankedNames,
        Cause::NoFunction => vdso_time_cause::NoFunction,
        Cause::Refused => vdso_time_cause::Refused,
        Cause::ClockNotServed => vdso_time_cause::ClockNotServed,
        Cause::ClockSource => vdso_time_cause::ClockSource,
        Cause::CounterDistrusted => vdso_time_cause::CounterDistrusted,
        Cause::Unexplained => vdso_time_cause::Unexplained,
        _ => vdso_time_cause::CannotTell,
    }
}

/// Finds the vDSO and its functions. Without a call of vdso_time_warm_up(), the first call of
/// another function finds them. The search makes system calls, so call vdso_time_warm_up() before
/// the program enters a sandbox.
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_warm_up() {
    vdso_time::warm_up();
}

/// Sets the address of the vDSO, for a caller without libc, or for a call before libc's
/// thread-local storage exists. The address is the value of AT_SYSINFO_EHDR in the auxiliary
/// vector, or NULL if the vector has no such entry.
///
/// Returns -EBUSY and changes nothing if the address is already set, or if an earlier call has
/// already looked for the vDSO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_set_address(ehdr: *const c_void) -> c_int {
    // SAFETY: the caller passes the value of AT_SYSINFO_EHDR, or null.
    match unsafe { vdso::set_address(ehdr.cast()) } {
        Ok(()) => 0,
        Err(error) => -error.raw_os_error(),
    }
}

/// Finds the image of the vDSO, and stores its address and its size. The image stays mapped until
/// the process ends. The program must not write to it.
///
/// Returns -ENOENT if the process has no vDSO, -EFAULT if the vDSO has been unmapped, -EPERM if a
/// sandbox denied the check of its address, and -ENOEXEC if the image is malformed. The clock
/// functions work even in these cases. Without the feature libc, -ENOENT can also mean that the
/// auxiliary vector could not be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_locate(base: *mut *const c_void, size: *mut usize) -> c_int {
    match Vdso::locate() {
        Ok(vdso) => {
            // SAFETY: the caller passes null or an address to write to.
            unsafe { store(Ok(vdso.size()), size) };
            // SAFETY: the caller passes null or an address to write to.
            unsafe { store(Ok(vdso.base().cast()), base) }
        }
        Err(LocateError::Absent) => negative(Errno::ENOENT),
        Err(LocateError::Unmapped) => negative(Errno::EFAULT),
        Err(LocateError::Unchecked) => negative(Errno::EPERM),
        Err(_) => -ENOEXEC,
    }
}

/// Returns the address of a function of the vDSO. Returns NULL if the process has no vDSO, or if
/// its vDSO has no function of this name and version. If `version` is NULL, any version matches.
/// Each call searches the image, so keep the result. vdso_sym() of parse_vdso.c takes the arguments
/// in the opposite order.
///
/// Functions of the vDSO return errors as negative numbers. The exception is powerpc: there, a bit
/// of the condition register says whether the result is an error, and a C program cannot read that
/// bit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_symbol(
    name: *const c_char,
    version: *const c_char,
) -> *mut c_void {
    match Vdso::locate() {
        // SAFETY: the caller passes null or strings.
        Ok(vdso) => unsafe { symbol(&vdso, name, version) },
        Err(_) => ptr::null_mut(),
    }
}

/// Writes a text with one line for each function that can use the vDSO: time, gettimeofday,
/// clock_gettime, clock_getres and getcpu. The line says whether the vDSO or a system call answers.
/// Writes at most `size` bytes, including the final NUL; 1000 are enough. Returns the length of the
/// whole text without the NUL, as snprintf(3) does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_routes(text: *mut c_char, size: usize) -> usize {
    // SAFETY: the caller passes null or room for `size` bytes.
    unsafe { write_text(&vdso_time::routes(), text, size) }
}

/// Writes at most `size` bytes of a text, including the final NUL. Returns the length of the whole
/// text without the NUL.
///
/// # Safety
/// `text` must be null or an address to write to. There must be room for `size` bytes or, if the
/// whole text with its NUL is shorter, for that text.
unsafe fn write_text(what: &dyn fmt::Display, text: *mut c_char, size: usize) -> usize {
    let mut text = Text {
        to: text.cast(),
        size: if text.is_null() { 0 } else { size },
        length: 0,
    };
    // `Text` never returns an error.
    let _ = write!(text, "{what}");
    if let Some(last) = text.size.checked_sub(1) {
        text.put(text.length.min(last), 0);
    }
    text.length
}

/// A text that is cut off after `size` bytes.
///
/// `to` is a pointer and not a slice of `size` bytes, because the caller's buffer can be shorter
/// than `size`: as with snprintf(3), a caller that knows that the text fits can pass `SIZE_MAX`.
struct Text {
    to: *mut u8,
    size: usize,
    length: usize,
}

impl Text {
    fn put(&self, at: usize, byte: u8) {
        if at < self.size {
            // SAFETY: the caller passes room for the text, or for its first `size` bytes.
            unsafe { self.to.wrapping_add(at).write(byte) };
        }
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.put(self.length, byte);
            self.length = self.length.wrapping_add(1);
        }
        Ok(())
    }
}

/// Returns the seconds and the nanoseconds of a time, in the order in which `vdso_timespec` has
/// them.
fn words(time: Timespec) -> [i64; 2] {
    [time.tv_sec, time.tv_nsec]
}
