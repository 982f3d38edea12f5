//! What the figures were measured on.

use std::fs;

/// Names and values, for the head of each report.
#[must_use]
pub fn describe() -> Vec<(&'static str, String)> {
    let read =
        |path| fs::read_to_string(path).map_or_else(|_| "unknown".into(), |text| text.trim().to_string());
    let cpuinfo = read("/proc/cpuinfo");
    let field = |name| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    // arm kernels print numbers instead of a name; x86 ones say whether there is a hypervisor.
    let model = field("model name").or_else(|| field("CPU part")).unwrap_or_else(|| "unknown".into());
    let guest = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let place = if guest { ", in a virtual machine" } else { "" };
    vec![
        ("CPU", format!("{model} ({}){place}", std::env::consts::ARCH)),
        ("kernel", format!("Linux {}", read("/proc/sys/kernel/osrelease"))),
        ("clock source", read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("libc", libc()),
        ("compiler", env!("VERSION_OF_RUSTC").into()),
    ]
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "a function of libc")]
fn libc() -> String {
    // SAFETY: the function has no precondition.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: it is a C string that stays.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    format!("glibc {}", version.to_string_lossy())
}

#[cfg(not(target_env = "gnu"))]
fn libc() -> String {
    let name = if cfg!(target_env = "musl") { "musl" } else { "unknown" };
    name.into()
}
