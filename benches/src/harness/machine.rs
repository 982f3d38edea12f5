//! What the figures were measured on: facts of the machine that runs the program, and of the
//! program itself.

#![allow(unsafe_code, reason = "gnu_get_libc_version(3)")]

use std::env::{self, consts::ARCH};
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
    let read = |path| {
        fs::read_to_string(path)
            .unwrap_or_else(|_| "unknown".into())
            .trim()
            .to_owned()
    };
    let kernel = read("/proc/sys/kernel/osrelease");
    let (libc, compiler) = (libc(), env!("BENCHES_COMPILER"));
    let [cpu, kernel, source] = if emulator == Some("user") {
        // /proc and /sys are the host's.
        let kernel = format!("{kernel}, of the machine that runs QEMU");
        [
            format!("QEMU's user mode ({ARCH})"),
            kernel,
            "none: QEMU's vDSO makes system calls".into(),
        ]
    } else {
        let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        [cpu(&read("/proc/cpuinfo")), kernel, source]
    };
    let emulated = match emulator {
        Some(_) => "- emulated by QEMU: only ratios within a table mean something\n",
        None => "",
    };
    format!(
        "- CPU: {cpu}\n- kernel: Linux {kernel}\n- clock source: {source}\n- libc: {libc}\n\
         - compiler: {compiler}\n{emulated}"
    )
}

/// Returns the CPU's name in the text of /proc/cpuinfo.
fn cpu(info: &str) -> String {
    let field = |name| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim())
    };
    // arm kernels print numbers instead of a name.
    let model = field("model name")
        .or_else(|| field("CPU part"))
        .unwrap_or("unknown");
    // x86 prints both. Many models have the same name.
    let number = |name| {
        field(name)
            .map(|number| format!(", {} {number}", name.trim_start_matches("cpu ").trim_end()))
    };
    let numbers = ["cpu family", "model\t"]
        .into_iter()
        .filter_map(number)
        .collect::<String>();
    let is_guest =
        field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    format!(
        "{model} ({ARCH}{numbers}){}",
        if is_guest {
            ", in a virtual machine"
        } else {
            ""
        }
    )
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
        let (native, emulated) = (describe_in(None), describe_in(Some("user")));
        assert!(
            native.contains(&format!("- CPU: {}\n", cpu(&info))),
            "{native}"
        );
        assert!(
            !emulated.contains(&cpu(&info)) && emulated.contains("- clock source: none"),
            "{emulated}"
        );
        let arch = std::env::consts::ARCH;
        let guest = "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: QEMU Virtual CPU\nflags\t\t: fpu hypervisor\n";
        let expected =
            format!("QEMU Virtual CPU ({arch}, family 6, model 207), in a virtual machine");
        assert_eq!(cpu(guest), expected);
        assert_eq!(
            cpu("processor\t: 0\nCPU part\t: 0xd07\n"),
            format!("0xd07 ({arch})")
        );
    }
}
