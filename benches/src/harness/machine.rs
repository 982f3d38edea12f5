//! Facts about the machine on which figures were measured, and about the program itself.

#![allow(unsafe_code, reason = "gnu_get_libc_version(3)")]

use std::env::{self, consts::ARCH};
use std::fmt::Write as _;
use std::fs;

/// `cargo xtask on` and Cross.toml set it: `user` in QEMU's user mode, `kernel` in a guest.
const VARIABLE: &str = "VDSO_TIME_EMULATED";

pub fn is_emulated() -> bool {
    env::var_os(VARIABLE).is_some()
}

pub fn describe() -> String {
    describe_in(env::var(VARIABLE).ok().as_deref())
}

fn describe_in(emulator: Option<&str>) -> String {
    let mut cpu = cpu(&read("/proc/cpuinfo"));
    let mut kernel = read("/proc/sys/kernel/osrelease");
    let mut source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if emulator == Some("user") {
        // /proc and /sys are the host's.
        cpu = format!("QEMU's user mode ({ARCH})");
        kernel += ", of the machine that runs QEMU";
        source = "none: QEMU's vDSO makes system calls".into();
    }
    let libc = libc();
    let compiler = env!("BENCHES_COMPILER");
    let emulated = match emulator {
        Some(_) => "- emulated by QEMU: only ratios within a table mean something\n",
        None => "",
    };
    format!(
        "- CPU: {cpu}\n- kernel: Linux {kernel}\n- clock source: {source}\n- libc: {libc}\n\
         - compiler: {compiler}\n{emulated}"
    )
}

/// Returns the text of a file, or `unknown`.
fn read(path: &str) -> String {
    match fs::read_to_string(path) {
        Ok(text) => text.trim().to_owned(),
        Err(_) => "unknown".into(),
    }
}

/// Returns a field of the text of /proc/cpuinfo.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let line = info.lines().find(|line| line.starts_with(name))?;
    let (_, value) = line.split_once(':')?;
    Some(value.trim())
}

/// Returns the CPU's name in the text of /proc/cpuinfo.
fn cpu(info: &str) -> String {
    // arm kernels print numbers instead of a name.
    let model = field(info, "model name").or(field(info, "CPU part"));
    let mut text = format!("{} ({ARCH}", model.unwrap_or("unknown"));
    // x86 prints both. Many models have the same name.
    if let Some(family) = field(info, "cpu family") {
        let _ = write!(text, ", family {family}");
    }
    if let Some(number) = field(info, "model\t") {
        let _ = write!(text, ", model {number}");
    }
    text.push(')');
    let flags = field(info, "flags").unwrap_or_default();
    if flags.split(' ').any(|flag| flag == "hypervisor") {
        text += ", in a virtual machine";
    }
    text
}

/// Returns the C library of this program.
fn libc() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the function has no precondition, and returns a C string that stays.
        let version = unsafe { libc::gnu_get_libc_version() };
        // SAFETY: as above.
        let version = unsafe { std::ffi::CStr::from_ptr(version) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    "not glibc".into()
}

#[cfg(test)]
mod tests {
    use super::{cpu, describe_in};

    #[test]
    fn the_facts_are_of_the_machine_that_runs_the_program() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let native = describe_in(None);
        let emulated = describe_in(Some("user"));
        assert!(
            native.contains(&format!("- CPU: {}\n", cpu(&info))),
            "{native}"
        );
        assert!(!emulated.contains(&cpu(&info)), "{emulated}");
        assert!(emulated.contains("- clock source: none"), "{emulated}");
    }

    #[test]
    fn a_cpu_is_named_as_its_architecture_names_it() {
        let arch = std::env::consts::ARCH;
        let x86 = "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 207\n\
                   model name\t: QEMU Virtual CPU\nflags\t\t: fpu hypervisor\n";
        let name = format!("QEMU Virtual CPU ({arch}, family 6, model 207), in a virtual machine");
        assert_eq!(cpu(x86), name);
        let arm = "processor\t: 0\nCPU part\t: 0xd07\n";
        assert_eq!(cpu(arm), format!("0xd07 ({arch})"));
    }
}
