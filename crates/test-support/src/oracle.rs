//! The kernel's own answers, through libc's `syscall` and nothing of the crate's but its plain data.

use std::ffi::{c_int, c_long, c_void};
use std::fs;
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use vdso_time::Timespec;

use super::not_run_here;

/// An answer, or `errno`.
pub type Answer<T> = Result<T, i32>;

/// A system call that takes a clock and writes two numbers, and whether they have 64 bits.
#[derive(Clone, Copy)]
pub struct Call {
    number: c_long,
    wide: bool,
}

/// Whether the calls without a number in their name are the 64-bit ones.
const WIDE: bool = cfg!(any(target_pointer_width = "64", target_arch = "x86_64"));

/// clock_gettime64 where there are two, then clock_gettime.
pub const CLOCK_GETTIME: [Call; 2] =
    [Call { number: 403, wide: true }, Call { number: libc::SYS_clock_gettime, wide: WIDE }];
/// clock_getres_time64 where there are two, then clock_getres.
pub const CLOCK_GETRES: [Call; 2] =
    [Call { number: 406, wide: true }, Call { number: libc::SYS_clock_getres, wide: WIDE }];

/// The kernel's clock_gettime.
pub fn clock_gettime(id: i32) -> Answer<Timespec> {
    ask(&CLOCK_GETTIME, id)
}

/// The kernel's clock_getres.
pub fn clock_getres(id: i32) -> Answer<Timespec> {
    ask(&CLOCK_GETRES, id)
}

/// The time since the Epoch, to the microsecond: `CLOCK_REALTIME`, cut, which is what gettimeofday(2) is.
pub fn micros() -> Answer<(i64, i64)> {
    clock_gettime(libc::CLOCK_REALTIME).map(|now| (now.tv_sec, now.tv_nsec / 1000))
}

/// The seconds of `CLOCK_REALTIME_COARSE`, which are those of time(2).
pub fn seconds() -> Answer<i64> {
    clock_gettime(libc::CLOCK_REALTIME_COARSE).map(|now| now.tv_sec)
}

/// The kernel's getcpu: the CPU and the node.
pub fn getcpu() -> Answer<(u32, u32)> {
    let (mut cpu, mut node) = (u32::MAX, u32::MAX);
    let nothing = std::ptr::null_mut::<c_void>();
    // SAFETY: getcpu(2) writes to the two places alone.
    if unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, nothing) } == 0 {
        Ok((cpu, node))
    } else {
        Err(last_errno())
    }
}

/// The number of the first of the calls that the kernel has.
pub fn number(calls: &[Call; 2]) -> u32 {
    let call =
        calls[skipped(calls)..].iter().find(|call| one(**call, libc::CLOCK_REALTIME) != Err(libc::ENOSYS));
    call.map_or(u32::MAX, |call| u32::try_from(call.number).unwrap())
}

/// How many of the calls do not exist by design: on 64-bit architectures there is only the second.
const fn skipped(calls: &[Call; 2]) -> usize {
    if WIDE { calls.len() - 1 } else { 0 }
}

fn ask(calls: &[Call; 2], id: i32) -> Answer<Timespec> {
    // 32-bit kernels have had the first since 5.1. It is asked for once, lest every reading costs two calls.
    static MISSING: AtomicI32 = AtomicI32::new(0);
    let first = skipped(calls).max(usize::from(MISSING.load(Ordering::Relaxed) != 0));
    match one(calls[first], id) {
        Err(libc::ENOSYS) if first == 0 => {
            MISSING.store(1, Ordering::Relaxed);
            one(calls[1], id)
        }
        answer => answer,
    }
}

fn one(call: Call, id: c_int) -> Answer<Timespec> {
    let (mut wide, mut narrow) = ([i64::MIN; 2], [i32::MIN; 2]);
    let place = if call.wide { (&raw mut wide).cast::<c_void>() } else { (&raw mut narrow).cast() };
    // SAFETY: the call writes two numbers of its width at its second argument.
    if unsafe { libc::syscall(call.number, id, place) } != 0 {
        return Err(last_errno());
    }
    let written = if call.wide { wide } else { narrow.map(i64::from) };
    Ok(Timespec { tv_sec: written[0], tv_nsec: written[1] })
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap()
}

/// libc's clock_gettime; none where its `time_t` has 32 bits and the time does not fit.
pub fn libc_clock_gettime(id: c_int) -> Option<Timespec> {
    // SAFETY: a `timespec` is numbers, and may be all zero.
    let mut now: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: libc writes the time there.
    let result = unsafe { libc::clock_gettime(id, &raw mut now) };
    let time = Timespec { tv_sec: wide(now.tv_sec), tv_nsec: wide(now.tv_nsec) };
    (result == 0 && time.tv_sec >= 0).then_some(time)
}

/// A number of libc's, whose width differs between the architectures.
fn wide(number: impl Into<i64>) -> i64 {
    number.into()
}

/// Where this thread's `errno` is.
pub fn errno() -> *mut c_int {
    #[cfg(target_os = "android")]
    use libc::__errno as location;
    #[cfg(not(target_os = "android"))]
    use libc::__errno_location as location;
    // SAFETY: libc's function has no precondition.
    unsafe { location() }
}

/// The address of the vDSO in the auxiliary vector, as libc has it; 0 if there is none.
pub fn sysinfo_ehdr() -> usize {
    // SAFETY: getauxval(3) takes any number.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) as usize }
}

/// What the device tree calls the machine.
fn board() -> String {
    fs::read_to_string("/proc/device-tree/compatible").unwrap_or_default()
}

/// Whether the kernel is of this version, or a later one, by uname(2).
pub fn kernel_is(major: u32, minor: u32) -> bool {
    // SAFETY: a `utsname` is characters, and may be all zero.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: libc writes the names there.
    assert_eq!(unsafe { libc::uname(&raw mut name) }, 0);
    let release = name.release.map(|character| char::from(character as u8));
    let mut numbers = release.split(|c| !c.is_ascii_digit());
    let mut number = || numbers.next()?.iter().collect::<String>().parse().ok();
    (number().unwrap_or(0), number().unwrap_or(0)) >= (major, minor)
}

/// Whether the vDSO reads the clock source itself, by what sysfs says that is.
pub fn counter_is_in_user_space() -> Option<bool> {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = fs::read_to_string(file).unwrap_or_default();
    match source.trim() {
        _ if sysinfo_ehdr() == 0 => Some(false),
        "tsc" | "hyperv_clocksource_tsc_page" => Some(true),
        // Some real ones have an erratum, for which the kernel reads them; QEMU's has none.
        "arch_sys_counter" if board().contains("linux,dummy-virt") => Some(true),
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "hyperv_clocksource_msr" => Some(false),
        other => {
            not_run_here(
                "clocksource",
                format!("where the clock source `{other}` is read, nothing else tells"),
            );
            None
        }
    }
}
