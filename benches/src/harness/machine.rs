//! What the figures were measured on: facts of the machine that runs the program, and of the
//! program itself.

#![allow(unsafe_code, reason = "gnu_get_libc_version(3)")]

use std::env::{self, consts::ARCH};
use std::fs;

const EMULATED: &str = "- emulated by QEMU: only ratios within a table mean something\n";

/// `cargo xtask on` and Cross.toml set it: `user` in QEMU's user mode, `kernel` in a guest.
const VARIABLE: &str = "VDSO_TIME_EMULATED";

pub fn is_emulated() -> bool {
    env::var_os(VARIABLE).is_some()
}

pub fn describe() -> String {
    describe_in(env::var(VARIABLE).ok().as_deref())
}

fn describe_in(emulator: Option<&str>) -> String {
    let unknown = || String::from("unknown");
    let read = |path| fs::read_to_string(path).map_or_else(|_| unknown(), |text| text.trim().to_string());
    let kernel = format!("Linux {}", read("/proc/sys/kernel/osrelease"));
    let mut facts = if emulator == Some("user") {
        // /proc and /sys are the host's.
        vec![
            ("CPU", format!("QEMU's user mode ({ARCH})")),
            ("kernel", format!("{kernel}, of the machine that runs QEMU")),
            ("clock source", "none: QEMU's vDSO makes system calls".into()),
        ]
    } else {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        vec![("CPU", cpu(&read("/proc/cpuinfo"))), ("kernel", kernel), ("clock source", read(source))]
    };
    facts.extend([("libc", libc()), ("compiler", env!("BENCHES_COMPILER").into())]);
    let line = |(name, value): (&str, String)| format!("- {name}: {value}\n");
    let lines: Vec<String> = facts.into_iter().map(line).chain(emulator.map(|_| EMULATED.into())).collect();
    lines.concat()
}

/// The CPU's name in the text of /proc/cpuinfo.
fn cpu(info: &str) -> String {
    let field = |name| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim())
    };
    // arm kernels print numbers instead of a name.
    let model = field("model name").or_else(|| field("CPU part")).unwrap_or("unknown");
    let is_guest = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    format!("{model} ({ARCH}){}", if is_guest { ", in a virtual machine" } else { "" })
}

/// The C library of this program.
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
    use std::process::Command;

    use super::{cpu, describe_in};

    fn said(program: &str, argument: &str) -> String {
        let output = Command::new(program).arg(argument).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn the_facts_are_of_the_program_and_of_the_machine_that_runs_it() {
        let native = describe_in(None);
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
        let compiler = format!("- compiler: {}\n", said(&rustc, "--version"));
        assert!(native.contains(&compiler), "{native}");
        if cfg!(target_env = "gnu") {
            assert!(
                native.contains(&format!("- libc: {}\n", said("getconf", "GNU_LIBC_VERSION"))),
                "{native}"
            );
        }
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        assert!(native.contains(&format!("- CPU: {}\n", cpu(&info))), "{native}");
        let emulated = describe_in(Some("user"));
        assert!(emulated.contains("- clock source: none") && emulated.contains(&compiler), "{emulated}");
        assert!(!emulated.contains(&cpu(&info)), "{emulated}");
    }

    #[test]
    fn a_cpu_has_the_name_that_its_kernel_prints() {
        let guest = "processor\t: 0\nmodel name\t: QEMU Virtual CPU\nflags\t\t: fpu hypervisor\n";
        let arch = std::env::consts::ARCH;
        assert_eq!(cpu(guest), format!("QEMU Virtual CPU ({arch}), in a virtual machine"));
        assert_eq!(cpu("processor\t: 0\nCPU part\t: 0xd07\n"), format!("0xd07 ({arch})"));
    }
}
