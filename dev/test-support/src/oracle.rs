//! The kernel's own answers, through libc's `syscall`. The crate only provides plain data types.

use std::ffi::{c_int, c_long, c_void};
use std::fs;
use std::io;

use vdso_time::Timespec;

use crate::not_run_here;

/// An answer, or `errno`.
pub type Answer<T> = Result<T, i32>;

/// Whether the call of every kernel writes 64-bit numbers.
const WIDE: bool = cfg!(any(target_pointer_width = "64", target_arch = "x86_64"));

/// Calls the kernel's clock_gettime.
pub fn clock_gettime(id: i32) -> Answer<Timespec> {
    ask([403, libc::SYS_clock_gettime], id)
}

/// Calls the kernel's clock_getres.
pub fn clock_getres(id: i32) -> Answer<Timespec> {
    ask([406, libc::SYS_clock_getres], id)
}

/// Returns the seconds of `CLOCK_REALTIME_COARSE`, which time(2) returns as well.
pub fn seconds() -> Answer<i64> {
    clock_gettime(libc::CLOCK_REALTIME_COARSE).map(|now| now.tv_sec)
}

/// Calls the kernel's getcpu. Returns the CPU and the node.
pub fn getcpu() -> Answer<(u32, u32)> {
    let mut cpu = u32::MAX;
    let mut node = u32::MAX;
    let nothing = std::ptr::null_mut::<c_void>();
    // SAFETY: getcpu(2) writes two `u32`, to `cpu` and to `node`.
    if unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, nothing) } == 0 {
        Ok((cpu, node))
    } else {
        Err(last_errno())
    }
}

/// Makes the 64-bit call, which 32-bit kernels have had since 5.1, or else the one that every
/// kernel has. Both take a clock and write two numbers.
fn ask([wide, every]: [c_long; 2], id: c_int) -> Answer<Timespec> {
    if WIDE {
        return one(every, true, id);
    }
    let answer = one(wide, true, id);
    if answer == Err(libc::ENOSYS) {
        return one(every, false, id);
    }
    answer
}

fn one(call: c_long, is_wide: bool, id: c_int) -> Answer<Timespec> {
    let mut wide = [i64::MIN; 2];
    let mut narrow = [i32::MIN; 2];
    let out = if is_wide {
        (&raw mut wide).cast::<c_void>()
    } else {
        (&raw mut narrow).cast()
    };
    // SAFETY: the call writes two numbers of its width at its second argument.
    if unsafe { libc::syscall(call, id, out) } != 0 {
        return Err(last_errno());
    }
    let written = if is_wide { wide } else { narrow.map(i64::from) };
    Ok(Timespec {
        tv_sec: written[0],
        tv_nsec: written[1],
    })
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap()
}

/// Returns the address of this thread's `errno`.
pub fn errno() -> *mut c_int {
    #[cfg(target_os = "android")]
    use libc::__errno as location;
    #[cfg(not(target_os = "android"))]
    use libc::__errno_location as location;
    // SAFETY: libc's function has no precondition.
    unsafe { location() }
}

/// Returns the address of the vDSO in the auxiliary vector, as libc has it; 0 if there is none.
pub fn sysinfo_ehdr() -> usize {
    auxval(libc::AT_SYSINFO_EHDR)
}

/// Returns a value of the auxiliary vector, as libc has it; 0 if there is none.
pub fn auxval(tag: libc::c_ulong) -> usize {
    // SAFETY: getauxval(3) takes any number.
    unsafe { libc::getauxval(tag) as usize }
}

/// Returns the machine's name in the device tree.
fn board() -> String {
    fs::read_to_string("/proc/device-tree/compatible").unwrap_or_default()
}

/// Returns whether the kernel has this version or a later one, by uname(2).
pub fn kernel_is(major: u32, minor: u32) -> bool {
    let name = nix::sys::utsname::uname().expect("uname");
    let release = name.release().to_str().expect("ASCII");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || -> u32 { numbers.next().unwrap_or_default().parse().unwrap_or(0) };
    [number(), number()] >= [major, minor]
}

/// Returns the kernel's clock source, from sysfs.
pub fn clock_source() -> Option<String> {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let name = fs::read_to_string(file).ok()?;
    Some(name.trim().to_owned())
}

/// Returns whether the vDSO reads the clock source itself.
pub fn counter_is_in_user_space() -> Option<bool> {
    if sysinfo_ehdr() == 0 {
        return Some(false);
    }
    match clock_source().unwrap_or_default().as_str() {
        "tsc"
        | "hyperv_clocksource_tsc_page"
        | "riscv_clocksource"
        | "tod"
        | "Constant"
        | "timebase" => Some(true),
        // Some real timers have an erratum, so the vDSO enters the kernel to read them. QEMU's has
        // none.
        "arch_sys_counter" if board().contains("linux,dummy-virt") => Some(true),
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "hyperv_clocksource_msr" => {
            Some(false)
        }
        other => {
            not_run_here(format!(
                "it is not known where the clock source `{other}` is read"
            ));
            None
        }
    }
}
