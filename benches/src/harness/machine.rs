//! What the figures were measured on.

use std::env;
use std::fs;
use std::process::Command;

use super::command::run;

const EMULATED: &str = "- emulated by QEMU: only ratios within a table mean something\n";

/// `cargo xtask on` tells its programs.
pub fn is_emulated() -> bool {
    env::var_os("VDSO_TIME_EMULATED").is_some()
}

pub fn describe() -> String {
    let unknown = || String::from("unknown");
    let read = |path| fs::read_to_string(path).map_or_else(|_| unknown(), |text| text.trim().to_string());
    let cpuinfo = read("/proc/cpuinfo");
    let field = |name| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    // arm kernels print numbers instead of a name.
    let model = field("model name").or_else(|| field("CPU part")).unwrap_or_else(unknown);
    let is_guest = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let place = if is_guest { ", in a virtual machine" } else { "" };
    // A guest kernel has neither command.
    let said = |program, argument| run(Command::new(program).arg(argument)).unwrap_or_else(|_| unknown());
    let facts = [
        ("CPU", format!("{model} ({}){place}", env::consts::ARCH)),
        ("kernel", format!("Linux {}", read("/proc/sys/kernel/osrelease"))),
        ("clock source", read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("libc", said("getconf", "GNU_LIBC_VERSION").trim().to_string()),
        ("compiler", said("rustc", "--version").trim().to_string()),
    ];
    let facts = facts.map(|(name, value)| format!("- {name}: {value}\n")).concat();
    facts + if is_emulated() { EMULATED } else { "" }
}
