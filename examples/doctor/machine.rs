//! What the system says of itself: the kernel, its clock source, and who stands between it and this process.

#![allow(unsafe_code, reason = "libc is called here")]

use std::env::consts::ARCH;
use std::fs;
use std::mem;
use std::path::Path;

use vdso_time::vdso::Vdso;

/// Who runs this process, if it is not the kernel alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supervisor {
    /// It unmaps the vDSO, and hides it.
    Valgrind,
    /// QEMU's user-mode emulation, since 8.2: a vDSO of its own, whose functions make system calls.
    Qemu,
    /// Another emulator of the processor, or an older QEMU.
    Emulator,
    /// Its own kernel, with a vDSO of its own.
    Gvisor,
    /// The first Windows Subsystem for Linux: the same.
    Wsl1,
}

impl Supervisor {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Valgrind => "valgrind",
            Self::Qemu => "QEMU's user-mode emulation",
            Self::Emulator => "an emulator",
            Self::Gvisor => "gVisor",
            Self::Wsl1 => "WSL 1",
        }
    }

    /// Whether the processor is not a real one, so that time spent says nothing.
    pub(crate) fn emulates(self) -> bool {
        matches!(self, Self::Valgrind | Self::Qemu | Self::Emulator)
    }
}

/// Where a clock source can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// By the vDSO.
    Anyone,
    /// By the vDSO, if the hypervisor says that the counter is the same on all CPUs (`PVCLOCK_TSC_STABLE_BIT`).
    AnyoneIfStable,
    Kernel,
    Unknown,
}

/// The clock sources of the four architectures' machines, and what they are.
const CLOCK_SOURCES: &[(&str, Reader, &str)] = &[
    ("tsc", Reader::Anyone, "the CPU's time-stamp counter"),
    ("arch_sys_counter", Reader::Anyone, "the CPU's generic timer"),
    ("hyperv_clocksource_tsc_page", Reader::Anyone, "the CPU's time-stamp counter, scaled by Hyper-V"),
    ("kvm-clock", Reader::AnyoneIfStable, "the CPU's time-stamp counter, scaled by KVM"),
    ("xen", Reader::AnyoneIfStable, "the CPU's time-stamp counter, scaled by Xen"),
    ("hyperv_clocksource_msr", Reader::Kernel, "a register of Hyper-V"),
    ("hpet", Reader::Kernel, "the chip set's event timer"),
    ("acpi_pm", Reader::Kernel, "the chip set's power-management timer"),
    ("arch_mem_counter", Reader::Kernel, "the system's generic timer, in memory"),
    ("jiffies", Reader::Kernel, "the timer's ticks"),
    ("refined-jiffies", Reader::Kernel, "the timer's ticks"),
];

/// Where a clock source can be read, and what it is.
pub(crate) fn clock_source(name: &str) -> (Reader, &'static str) {
    let known = CLOCK_SOURCES.iter().find(|(known, ..)| *known == name);
    known.map_or((Reader::Unknown, "of some driver"), |(_, reader, what)| (*reader, what))
}

/// The machine, as far as it tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    /// uname -r.
    pub(crate) release: String,
    pub(crate) clock_source: Option<String>,
    pub(crate) available: Vec<String>,
    /// What the kernel was told at boot.
    pub(crate) command_line: String,
    /// Whether the CPU has a time-stamp counter of a constant rate that never stops.
    pub(crate) steady_tsc: bool,
    pub(crate) supervisor: Option<Supervisor>,
}

pub(crate) const CLOCK_SOURCE_FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

impl Machine {
    pub(crate) fn look(vdso: Option<&Vdso<'_>>) -> Self {
        let clock_source = |file| read(&format!("{CLOCK_SOURCE_FOLDER}/{file}_clocksource"));
        let release = release();
        Self {
            clock_source: clock_source("current"),
            available: clock_source("available")
                .map_or(Vec::new(), |names| names.split_whitespace().map(str::to_owned).collect()),
            command_line: read("/proc/cmdline").unwrap_or_default(),
            steady_tsc: has_steady_tsc(&read("/proc/cpuinfo").unwrap_or_default()),
            supervisor: supervisor(vdso, &release),
            release,
        }
    }
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn has_steady_tsc(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag| flags.split_whitespace().any(|word| word == flag);
    has("constant_tsc") && has("nonstop_tsc")
}

fn supervisor(vdso: Option<&Vdso<'_>>, release: &str) -> Option<Supervisor> {
    // gVisor and WSL 1 link their image for this address, wherever they map it. QEMU relocates its own.
    const PRELINKED: u64 = 0xffff_ffff_ff70_0000;
    let linked_for = vdso.map_or(0, |vdso| vdso.image().load_address());
    let mapped_at = vdso.map_or(0, |vdso| vdso.base().addr() as u64);
    if read("/proc/self/maps").is_some_and(|maps| maps.lines().any(is_valgrinds)) {
        Some(Supervisor::Valgrind)
    } else if linked_for == PRELINKED {
        Some(if release.contains("Microsoft") { Supervisor::Wsl1 } else { Supervisor::Gvisor })
    } else if linked_for != 0 && linked_for == mapped_at {
        Some(Supervisor::Qemu)
    } else {
        is_emulated().then_some(Supervisor::Emulator)
    }
}

/// Whether a line of /proc/self/maps names a file of valgrind's: what it loads before a program, or a tool of its own.
fn is_valgrinds(line: &str) -> bool {
    let path = Path::new(line.split_once('/').map_or("", |(_, path)| path));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let in_its_folder = path.parent().is_some_and(|folder| folder.ends_with("valgrind"));
    name.starts_with("vgpreload_") || (in_its_folder && name.ends_with("-linux"))
}

/// Whether the kernel is of another architecture than this program, or does not know of seccomp although it says that
/// this process is not under a filter: an emulator has answered instead.
fn is_emulated() -> bool {
    let kernel = read("/proc/sys/kernel/arch").unwrap_or_default(); // since Linux 6.1
    let foreign = !kernel.is_empty() && matches!(ARCH, "x86_64" | "aarch64") && kernel != ARCH
        || ARCH == "x86" && kernel == "aarch64"
        || ARCH == "arm" && kernel.contains("86");
    // SAFETY: it takes no argument.
    let knows_seccomp = unsafe { libc::prctl(libc::PR_GET_SECCOMP) } == 0;
    let status = read("/proc/self/status").unwrap_or_default();
    let free = status.lines().filter_map(|line| line.strip_prefix("Seccomp:")).any(|mode| mode.trim() == "0");
    foreign || (free && !knows_seccomp)
}

/// `release` of uname(2).
fn release() -> String {
    // SAFETY: a `utsname` is characters, and may be all zero.
    let mut name: libc::utsname = unsafe { mem::zeroed() };
    // SAFETY: libc writes the names there.
    unsafe { libc::uname(&raw mut name) };
    let characters = name.release.iter().take_while(|character| **character != 0);
    characters.map(|character| char::from(*character as u8)).collect()
}

/// Whether the CPU's counter may be read: PR_SET_TSC, inherited from who started this, makes that fatal.
pub(crate) fn counter_is_fatal() -> bool {
    const PR_GET_TSC: i32 = 25;
    const PR_TSC_SIGSEGV: i32 = 2;
    let mut mode = 0;
    // SAFETY: the kernel writes an `int` there, if it knows the question.
    unsafe { libc::prctl(PR_GET_TSC, &raw mut mode) };
    mode == PR_TSC_SIGSEGV
}
