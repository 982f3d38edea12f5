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

use crate::json::{json, kebab_case};

/// What runs this process, if it is not the kernel alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervisor {
    /// Valgrind hides the vDSO.
    Valgrind,
    /// An emulator of the processor, as QEMU, whose own vDSO makes system calls.
    Emulator,
    /// A kernel that runs on another one, with its own vDSO: gVisor, WSL 1 or user-mode Linux.
    GuestKernel,
}

json!(Supervisor, |supervisor| kebab_case(supervisor));

impl Supervisor {
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

/// Who can read a clock source.
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
            Self::Unknown => "the vDSO can probably not read it",
        }
    }
}

/// The clock sources of the architectures with a table.
const CLOCK_SOURCES: &[(&str, Reader, &str)] = &[
    ("tsc", Reader::Vdso, "the CPU's time-stamp counter"),
    // Not `Vdso`, because no one should choose it: the kernel drops it when it has `tsc`.
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
    ("hpet", Reader::Kernel, "the chip set's event timer"),
    (
        "acpi_pm",
        Reader::Kernel,
        "the chip set's power-management timer",
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
    let known = CLOCK_SOURCES.iter().find(|(known, ..)| *known == name);
    known.map_or(
        (Reader::Unknown, "of another driver"),
        |(_, reader, what)| (*reader, what),
    )
}

pub(crate) const CLOCK_SOURCE_FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

/// The kernel's clock sources, from sysfs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClockSource {
    /// The one in use; `None` if sysfs does not say.
    pub current: Option<String>,
    /// Those that can be chosen.
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
        let kernel = uname().map_or(String::new(), |name| {
            name.release().to_string_lossy().into_owned()
        });
        // QEMU relocates its image.
        let addresses =
            Vdso::locate().map(|vdso| (vdso.image().load_address(), vdso.base().addr() as u64));
        Self {
            supervisor: supervisor(addresses.ok(), &kernel, read),
            ..Self::described(kernel, read)
        }
    }

    /// Describes the clock source in use. Under `kvm-clock` the CPU's invariant bit decides whether
    /// a move of the guest can change the counter's rate, so it is named.
    pub(crate) fn described_source(&self) -> String {
        let Some(current) = &self.clock_source.current else {
            return format!("unknown: no name in {CLOCK_SOURCE_FOLDER}/current_clocksource");
        };
        let (reader, what) = clock_source(current);
        let bit = match (current.as_str(), self.has_steady_tsc) {
            ("kvm-clock", true) => "; the CPU states an invariant counter",
            ("kvm-clock", false) => {
                "; the CPU states no invariant counter (vdso-time-counter needs trust_hypervisor())"
            }
            _ => "",
        };
        format!("{current}: {what}; {}{bit}", reader.ability())
    }

    /// Returns what files say about this platform, without a supervisor.
    pub(crate) fn described(kernel: String, read: impl Fn(&str) -> Option<String>) -> Self {
        let file = |name| {
            read(&format!("{CLOCK_SOURCE_FOLDER}/{name}_clocksource")).filter(|name| is_name(name))
        };
        let available = file("available").unwrap_or_default();
        let flags = cpu_flags(&read("/proc/cpuinfo").unwrap_or_default());
        let has_flag = |flag: &str| flags.iter().any(|known| known == flag);
        let uptime = read("/proc/uptime").and_then(|text| text.split('.').next()?.parse().ok());
        Self {
            clock_source: ClockSource {
                current: file("current"),
                available: available.split_whitespace().map(String::from).collect(),
            },
            architecture: ARCH,
            supervisor: None,
            command_line: read("/proc/cmdline").unwrap_or_default(),
            has_steady_tsc: has_flag("constant_tsc") && has_flag("nonstop_tsc"),
            is_virtual: has_flag("hypervisor"),
            is_new: uptime.is_some_and(is_new),
            kernel,
        }
    }

    /// Returns whether clock reads may soon be answered elsewhere.
    ///
    /// gVisor, which names no clock source, measures the counter for about a second after its
    /// start, and its vDSO makes system calls meanwhile. Linux leaves the sources named here when
    /// it has measured a better one.
    pub(crate) fn is_settling(&self) -> bool {
        self.is_new
            && match self.clock_source.current.as_deref() {
                None => self.supervisor == Some(Supervisor::GuestKernel),
                Some(current) => ["tsc-early", "jiffies", "refined-jiffies"].contains(&current),
            }
    }
}

/// Returns whether a kernel may still choose its clock source, so many seconds after its start.
fn is_new(seconds: i64) -> bool {
    seconds < 5
}

/// Returns whether the kernel may have started just now. It reads no file, unlike
/// [`Platform::look`].
pub(crate) fn may_be_new() -> bool {
    clock_gettime(ClockId::BOOTTIME).is_ok_and(|time| is_new(time.tv_sec))
}

/// Reads a file of the kernel. In a container it can be a pipe without a writer, or have no end.
pub(crate) fn read(path: &str) -> Option<String> {
    const MOST_BYTES: u64 = 1 << 24;
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}

/// Returns whether a text can be the name of a clock source. A container can have any file in place
/// of sysfs, and a terminal obeys control characters.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

/// Returns the flags of an x86 CPU.
fn cpu_flags(cpuinfo: &str) -> Vec<String> {
    let flags = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    flags.split_whitespace().map(String::from).collect()
}

/// Returns what runs this process. The addresses are those that the vDSO is linked for and mapped
/// at.
pub(crate) fn supervisor(
    addresses: Option<(u64, u64)>,
    release: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Option<Supervisor> {
    let (linked_for, mapped_at) = addresses.unwrap_or_default();
    let maps = read("/proc/self/maps").unwrap_or_default();
    // A program in a folder of this name has a vDSO.
    let is_in_valgrind = ["/valgrind/", "/vgpreload_"]
        .iter()
        .any(|part| maps.contains(part));
    if addresses.is_none() && is_in_valgrind {
        Some(Supervisor::Valgrind)
    } else if is_guest_kernels(linked_for, release) {
        Some(Supervisor::GuestKernel)
    } else {
        let is_relocated = linked_for != 0 && linked_for == mapped_at;
        (is_relocated || is_emulated(read)).then_some(Supervisor::Emulator)
    }
}

/// Returns whether a vDSO that is linked for this address is gVisor's, WSL 1's or UML's. The
/// kernels of x86_64 before Linux 3.18 can have the same address.
fn is_guest_kernels(linked_for: u64, release: &str) -> bool {
    let mut numbers = release.split('.').map(|number| number.parse().unwrap_or(0));
    let version: [u32; 2] = [(); 2].map(|()| numbers.next().unwrap_or(0));
    linked_for == 0xffff_ffff_ff70_0000 && version >= [3, 18]
}

/// Returns whether an emulator answers. QEMU does not know the call that asks for the seccomp mode,
/// but shows the file of a kernel that does.
fn is_emulated(read: impl Fn(&str) -> Option<String>) -> bool {
    // SAFETY: it takes no argument.
    let mode = Errno::result(unsafe { libc::prctl(libc::PR_GET_SECCOMP) });
    let status = read("/proc/thread-self/status").unwrap_or_default();
    mode == Err(Errno::EINVAL) && status.lines().any(|line| line.starts_with("Seccomp:"))
}

/// Returns whether reading the CPU's counter ends this process: the parent called
/// prctl(PR_SET_TSC).
pub(crate) fn is_counter_fatal() -> bool {
    let mut mode = 0;
    // SAFETY: the kernel writes an `int` there, if it knows the request.
    unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    mode == libc::PR_TSC_SIGSEGV
}
