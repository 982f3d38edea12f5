//! The kernel, its clock source, and what stands between the kernel and this process.

#![allow(unsafe_code, reason = "prctl(2) is called here")]

use std::env::consts::ARCH;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;

use nix::errno::Errno;
use nix::sys::utsname::uname;
use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, clock_gettime};

use crate::json::json;

/// What runs this process, if it is not the kernel alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervisor {
    /// Valgrind hides the vDSO.
    Valgrind,
    /// An emulator of the processor, such as QEMU, whose own vDSO makes system calls.
    Emulator,
    /// A kernel that runs on another one, with its own vDSO: gVisor, WSL 1 or user-mode Linux.
    GuestKernel,
}

json!(Supervisor, |supervisor| supervisor.word());

impl Supervisor {
    /// Returns the word of the JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Valgrind => "valgrind",
            Self::Emulator => "emulator",
            Self::GuestKernel => "guest-kernel",
        }
    }

    /// Returns the name that a sentence uses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Valgrind => "valgrind",
            Self::Emulator => "an emulator",
            Self::GuestKernel => "gVisor, WSL 1 or UML",
        }
    }

    /// Returns whether the processor is emulated, so that timing is meaningless.
    pub(crate) fn emulates(self) -> bool {
        self != Self::GuestKernel
    }
}

/// What can read a clock source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Vdso,
    /// The vDSO, if the hypervisor sets `PVCLOCK_TSC_STABLE_BIT`.
    VdsoIfStable,
    Kernel,
    Unknown,
}

impl Reader {
    fn ability(self) -> &'static str {
        match self {
            Self::Vdso => "the vDSO can read it",
            Self::VdsoIfStable => "the vDSO may read it",
            Self::Kernel => "only the kernel can read it",
            Self::Unknown => "the vDSO probably cannot read it",
        }
    }
}

/// The clock sources of the architectures for which vdso-time has a table.
pub(crate) const CLOCK_SOURCES: &[(&str, Reader, &str)] = &[
    ("tsc", Reader::Vdso, "the CPU's time-stamp counter"),
    // The vDSO can read `tsc-early`, but the kernel drops this source when it has measured `tsc`.
    // Users must be advised to replace the kernel's parameter `clocksource=tsc-early`. The doctor
    // gives this advice only for sources that are not `Vdso`, so this row has `VdsoIfStable`.
    (
        "tsc-early",
        Reader::VdsoIfStable,
        "the CPU's time-stamp counter, whose rate is still being measured",
    ),
    ("arch_sys_counter", Reader::Vdso, "the CPU's generic timer"),
    ("riscv_clocksource", Reader::Vdso, "the CPU's time register"),
    ("tod", Reader::Vdso, "the CPU's time-of-day clock"),
    ("Constant", Reader::Vdso, "the CPU's stable counter"),
    ("timebase", Reader::Vdso, "the CPU's time base"),
    (
        "hyperv_clocksource_tsc_page",
        Reader::Vdso,
        "the CPU's time-stamp counter, scaled by Hyper-V",
    ),
    (
        "kvm-clock",
        Reader::VdsoIfStable,
        "the CPU's time-stamp counter, if KVM says that it is the same on all CPUs",
    ),
    (
        "xen",
        Reader::VdsoIfStable,
        "the CPU's time-stamp counter, if Xen says that it is the same on all CPUs",
    ),
    (
        "hyperv_clocksource_msr",
        Reader::Kernel,
        "a register of Hyper-V",
    ),
    ("hpet", Reader::Kernel, "the chipset's event timer"),
    (
        "acpi_pm",
        Reader::Kernel,
        "the chipset's power-management timer",
    ),
    (
        "arch_mem_counter",
        Reader::Kernel,
        "the system's generic timer, in memory",
    ),
    ("jiffies", Reader::Kernel, "the timer's ticks"),
    ("refined-jiffies", Reader::Kernel, "the timer's ticks"),
];

/// Returns who can read a clock source, and what it is.
pub(crate) fn clock_source(name: &str) -> (Reader, &'static str) {
    for (known, reader, what) in CLOCK_SOURCES {
        if *known == name {
            return (*reader, what);
        }
    }
    (Reader::Unknown, "unknown to the doctor")
}

pub(crate) const CLOCK_SOURCE_DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";

/// The kernel's clock sources, from sysfs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClockSource {
    /// The clock source in use; `None` if sysfs does not contain it.
    pub current: Option<String>,
    /// The clock sources that can be chosen.
    pub available: Vec<String>,
}

json!(ClockSource, |source| current, available);

/// The kernel, its clock sources, and what runs this process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Platform {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The architecture of this program, as Rust names it.
    pub architecture: &'static str,
    /// What runs this process, if it is not the kernel alone.
    pub supervisor: Option<Supervisor>,
    /// The clock sources.
    pub clock_source: ClockSource,
    /// The kernel's parameters.
    pub(crate) command_line: String,
    /// Whether the CPU has a time-stamp counter of constant rate that never stops.
    pub(crate) has_steady_tsc: bool,
    /// Whether a hypervisor runs this kernel.
    pub(crate) is_virtual: bool,
    /// Whether the kernel started less than five seconds ago.
    pub(crate) is_new: bool,
}

impl Platform {
    pub(crate) fn look() -> Self {
        let kernel = match uname() {
            Ok(name) => name.release().to_string_lossy().into_owned(),
            Err(_) => String::new(),
        };
        // QEMU relocates the addresses inside its vDSO, and Linux does not. So under QEMU, unlike
        // on Linux, the image appears to be linked for the address that it is mapped at.
        let addresses = match Vdso::locate() {
            Ok(vdso) => Some(Addresses {
                linked_for: vdso.image().load_address(),
                mapped_at: vdso.base().addr() as u64,
            }),
            Err(_) => None,
        };
        Self {
            supervisor: supervisor(addresses, &kernel, read),
            ..Self::described(kernel, read)
        }
    }

    /// Describes the clock source in use. Under `kvm-clock` the description also says whether the
    /// CPU reports an invariant counter. If the CPU does not, a migration of the guest can change
    /// the counter's rate.
    pub(crate) fn described_source(&self) -> String {
        let Some(current) = &self.clock_source.current else {
            return format!("unknown: no name in {CLOCK_SOURCE_DIRECTORY}/current_clocksource");
        };
        let (reader, what) = clock_source(current);
        let bit = match (current.as_str(), self.has_steady_tsc) {
            ("kvm-clock", true) => "; the CPU reports an invariant counter",
            ("kvm-clock", false) => {
                "; the CPU does not report an invariant counter (vdso-time-counter needs trust_hypervisor())"
            }
            _ => "",
        };
        format!("{current}: {what}; {}{bit}", reader.ability())
    }

    /// Describes this platform from the kernel's files, which `read` returns. It does not determine
    /// the supervisor.
    pub(crate) fn described(kernel: String, read: impl Fn(&str) -> Option<String>) -> Self {
        let names = |file| {
            let text = read(&format!("{CLOCK_SOURCE_DIRECTORY}/{file}"))?;
            if is_name(&text) { Some(text) } else { None }
        };
        let available = names("available_clocksource").unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let flags = cpu_flags(&cpuinfo);
        let uptime = read("/proc/uptime").unwrap_or_default();
        let seconds = uptime.split('.').next().unwrap_or_default().parse();
        Self {
            clock_source: ClockSource {
                current: names("current_clocksource"),
                available: available.split_whitespace().map(String::from).collect(),
            },
            architecture: ARCH,
            supervisor: None,
            command_line: read("/proc/cmdline").unwrap_or_default(),
            has_steady_tsc: flags.contains(&"constant_tsc") && flags.contains(&"nonstop_tsc"),
            is_virtual: flags.contains(&"hypervisor"),
            is_new: seconds.is_ok_and(is_new),
            kernel,
        }
    }

    /// Returns whether the kernel may soon change where clock reads are answered.
    ///
    /// gVisor, which names no clock source, measures the counter for about a second after its
    /// start, and its vDSO makes system calls meanwhile. Linux replaces a provisional source
    /// (`tsc-early`, `jiffies` or `refined-jiffies`) when it has measured a better one.
    pub(crate) fn is_settling(&self) -> bool {
        if !self.is_new {
            return false;
        }
        match self.clock_source.current.as_deref() {
            None => self.supervisor == Some(Supervisor::GuestKernel),
            Some(current) => ["tsc-early", "jiffies", "refined-jiffies"].contains(&current),
        }
    }
}

/// Returns whether a kernel that started this many seconds ago may still change its clock source.
fn is_new(seconds: i64) -> bool {
    seconds < 5
}

/// Returns whether the kernel may have started just now. Unlike [`Platform::look`], this function
/// reads no file.
pub(crate) fn may_be_new() -> bool {
    clock_gettime(ClockId::BOOTTIME).is_ok_and(|time| is_new(time.tv_sec))
}

/// Reads a file of the kernel. In a container, something else can be mounted at its path, such as a
/// pipe without a writer or a file without an end. So the function does not wait for a writer, and
/// reads at most 16 MiB. The names of processes and of mapped files need not be UTF-8.
pub(crate) fn read(path: &str) -> Option<String> {
    const MOST_BYTES: u64 = 1 << 24;
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// Returns whether a text can be the name of a clock source: it is not empty, and has no control
/// characters. A container can mount any file over sysfs, and a terminal that prints its content
/// would obey the control characters.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

/// Returns the flags of an x86 CPU.
fn cpu_flags(cpuinfo: &str) -> Vec<&str> {
    for line in cpuinfo.lines() {
        if line.starts_with("flags") {
            return line.split_whitespace().collect();
        }
    }
    Vec::new()
}

/// The addresses that the vDSO is linked for and mapped at.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) linked_for: u64,
    pub(crate) mapped_at: u64,
}

/// Returns what runs this process, if it is not the kernel alone. `addresses` has the addresses of
/// the process's vDSO, if the process has one.
pub(crate) fn supervisor(
    addresses: Option<Addresses>,
    release: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Option<Supervisor> {
    match addresses {
        Some(Addresses { linked_for, .. }) if is_guest_kernels(linked_for, release) => {
            return Some(Supervisor::GuestKernel);
        }
        Some(Addresses {
            linked_for,
            mapped_at,
        }) => {
            let is_relocated = linked_for != 0 && linked_for == mapped_at;
            if is_relocated {
                return Some(Supervisor::Emulator);
            }
        }
        // Valgrind hides the vDSO, so valgrind's paths count only in a process without a vDSO. A
        // path alone proves nothing: a native program may live in a directory called valgrind.
        None => {
            let maps = read("/proc/self/maps").unwrap_or_default();
            if maps.contains("/valgrind/") || maps.contains("/vgpreload_") {
                return Some(Supervisor::Valgrind);
            }
        }
    }
    if is_emulated(read) {
        return Some(Supervisor::Emulator);
    }
    None
}

/// Returns whether a vDSO that is linked for this address belongs to gVisor, WSL 1 or UML. The
/// vDSOs of x86_64 kernels before Linux 3.18 can be linked for the same address. So for such a
/// release, the result is `false`.
fn is_guest_kernels(linked_for: u64, release: &str) -> bool {
    let mut numbers = release.split('.');
    let mut next = || -> u32 {
        let number = numbers.next().unwrap_or_default();
        number.parse().unwrap_or(0)
    };
    let version = [next(), next()];
    linked_for == 0xffff_ffff_ff70_0000 && version >= [3, 18]
}

/// Returns whether an emulator answers this process's system calls.
///
/// QEMU does not implement `PR_GET_SECCOMP`, but its /proc/thread-self/status comes from a kernel
/// that does. So if prctl(2) fails with `EINVAL` although that file has a line `Seccomp:`, an
/// emulator answers the system calls.
fn is_emulated(read: impl Fn(&str) -> Option<String>) -> bool {
    // SAFETY: `PR_GET_SECCOMP` takes no argument.
    let mode = Errno::result(unsafe { libc::prctl(libc::PR_GET_SECCOMP) });
    let status = read("/proc/thread-self/status").unwrap_or_default();
    mode == Err(Errno::EINVAL) && status.lines().any(|line| line.starts_with("Seccomp:"))
}

/// Returns whether a read of the CPU's counter ends this process, because the process that started
/// it called prctl(PR_SET_TSC).
pub(crate) fn is_counter_fatal() -> bool {
    let mut mode = 0;
    // SAFETY: if the kernel knows `PR_GET_TSC`, it writes an `int` to `mode`.
    unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    mode == libc::PR_TSC_SIGSEGV
}
