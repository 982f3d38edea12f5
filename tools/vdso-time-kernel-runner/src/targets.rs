//! Where programs can run, as tables: architectures, kernels and boot options.

/// An architecture that programs are built for.
#[derive(Debug, PartialEq)]
pub struct Arch {
    pub name: &'static str,
    pub triple: &'static str,
    /// Debian's name, and QEMU's.
    pub debian: &'static str,
    pub qemu: &'static str,
    /// The machines that run its programs without an emulator, as `std::env::consts::ARCH`.
    pub hosts: &'static [&'static str],
    /// The guests whose kernels run its programs, the usual one first.
    pub guests: &'static [&'static str],
    pub rustflags: &'static str,
}

const fn arch(
    [name, triple, debian, qemu]: [&'static str; 4],
    hosts: &'static [&'static str],
    guests: &'static [&'static str],
) -> Arch {
    Arch { name, triple, debian, qemu, hosts, guests, rustflags: "" }
}

const ARMV7: Arch =
    arch(["armv7", "armv7-unknown-linux-gnueabihf", "armhf", "arm"], &["arm"], &["armhf", "arm64"]);

pub const ARCHES: &[Arch] = &[
    arch(["x86_64", "x86_64-unknown-linux-gnu", "amd64", "x86_64"], &["x86_64"], &["amd64"]),
    arch(["i686", "i686-unknown-linux-gnu", "i386", "i386"], &["x86", "x86_64"], &["i386", "amd64"]),
    arch(["aarch64", "aarch64-unknown-linux-gnu", "arm64", "aarch64"], &["aarch64"], &["arm64"]),
    ARMV7,
    // The same libraries, but our code in Thumb mode.
    Arch { name: "thumbv7", rustflags: "-Ctarget-feature=+thumb-mode", ..ARMV7 },
    arch(["riscv64", "riscv64gc-unknown-linux-gnu", "riscv64", "riscv64"], &["riscv64"], &["riscv64"]),
    arch(["s390x", "s390x-unknown-linux-gnu", "s390x", "s390x"], &["s390x"], &["s390x"]),
    arch(
        ["loongarch64", "loongarch64-unknown-linux-gnu", "loong64", "loongarch64"],
        &["loongarch64"],
        &["loong64"],
    ),
    arch(["ppc64le", "powerpc64le-unknown-linux-gnu", "ppc64el", "ppc64le"], &[], &["ppc64el"]),
];

impl Arch {
    /// Returns whether Debian has the standard library. Otherwise it is compiled.
    pub fn is_packaged(&self) -> bool {
        ["amd64", "arm64", "armhf", "i386"].contains(&self.debian)
    }

    /// GNU's name: the prefix of its compiler, and the folder of its libraries.
    pub fn gnu(&self) -> String {
        self.triple.replace("-unknown", "").replace("armv7", "arm").replace("riscv64gc", "riscv64")
    }
}

/// A computer that QEMU emulates, and Debian's kernels for it.
#[derive(Debug, PartialEq)]
pub struct Guest {
    /// Debian's name of its architecture.
    pub name: &'static str,
    /// Depends on the suite's kernel. The kernels for clouds are a third of the size.
    pub package: &'static str,
    /// Version and suite.
    pub kernels: &'static [(&'static str, &'static str)],
    pub qemu: &'static str,
    pub machine: &'static [&'static str],
    pub console: &'static str,
}

const KERNELS: &[(&str, &str)] =
    &[("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie"), ("7", "sid")];

const AMD64: Guest = Guest {
    name: "amd64",
    package: "linux-image-cloud-amd64",
    kernels: KERNELS,
    qemu: "qemu-system-x86_64",
    // This CPU has no cmpxchg16b, so kernels use other code. In QEMU 7.2 the instruction spoils the
    // flags, and some kernels crash. QEMU 10 was not tried with it.
    machine: &["-cpu", "qemu64,-cx16"],
    // On a busy host the kernel's watchdog finds the TSC unstable.
    console: "ttyS0 tsc=reliable",
};

const ARM64: Guest = Guest {
    name: "arm64",
    package: "linux-image-cloud-arm64",
    kernels: KERNELS,
    qemu: "qemu-system-aarch64",
    machine: &["-M", "virt", "-cpu", "cortex-a57"],
    console: "ttyAMA0",
};

pub const GUESTS: &[Guest] = &[
    AMD64,
    // Debian's last kernel for i386 is 6.1.
    Guest { name: "i386", package: "linux-image-686", kernels: KERNELS.split_at(2).0, machine: &[], ..AMD64 },
    ARM64,
    Guest {
        name: "armhf",
        package: "linux-image-armmp",
        qemu: "qemu-system-arm",
        machine: &["-M", "virt", "-cpu", "cortex-a15"],
        ..ARM64
    },
    Guest {
        name: "riscv64",
        package: "linux-image-riscv64",
        kernels: KERNELS.split_at(2).1,
        qemu: "qemu-system-riscv64",
        machine: &["-M", "virt"],
        console: "ttyS0",
    },
    Guest {
        name: "s390x",
        package: "linux-image-s390x",
        kernels: KERNELS.split_at(1).1,
        qemu: "qemu-system-s390x",
        machine: &["-M", "s390-ccw-virtio"],
        console: "ttysclp0",
    },
    Guest {
        name: "loong64",
        package: "linux-image-loong64",
        kernels: KERNELS.split_at(3).1,
        qemu: "qemu-system-loongarch64",
        machine: &["-M", "virt", "-cpu", "la464"],
        // The kernel accesses a keyboard controller that QEMU does not have.
        console: "ttyS0 initcall_blacklist=i8042_init",
    },
    Guest {
        name: "ppc64el",
        package: "linux-image-powerpc64le",
        kernels: KERNELS.split_at(1).1,
        qemu: "qemu-system-ppc64",
        machine: &["-M", "pseries", "-cpu", "power9"],
        console: "hvc0",
    },
];

/// A difference from the usual boot: `+NAME`.
#[derive(Debug, PartialEq)]
pub struct BootOption {
    pub name: &'static str,
    pub guests: &'static [&'static str],
    pub change: Change,
}

#[derive(Debug, PartialEq)]
pub enum Change {
    /// An argument for the kernel.
    Kernel(&'static str),
    /// Arguments for QEMU.
    Qemu(&'static [&'static str]),
    /// Another machine, described by a device tree of this kernel's package.
    Board { qemu: &'static [&'static str], tree: &'static str, from: &'static str },
    /// Init sets the wall clock, in seconds since the Epoch.
    Clock(i64),
}

const X86: &[&str] = &["amd64", "i386"];
const ARM: &[&str] = &["arm64", "armhf"];
const ALL: &[&str] = &["amd64", "i386", "arm64", "armhf", "riscv64", "s390x", "loong64", "ppc64el"];

const fn option(name: &'static str, guests: &'static [&'static str], change: Change) -> BootOption {
    BootOption { name, guests, change }
}

/// Has no architected timer: the kernel blanks the names of the vDSO functions that would read it.
const VEXPRESS: Change = Change::Board {
    // Its sound chip would make QEMU look for audio here.
    qemu: &["-M", "vexpress-a9", "-audiodev", "none,id=none", "-global", "pl041.audiodev=none"],
    tree: "vexpress-v2p-ca9.dtb",
    from: "6.12",
};

pub const BOOT_OPTIONS: &[BootOption] = &[
    option("hpet", X86, Change::Kernel("clocksource=hpet")),
    option("acpi_pm", X86, Change::Kernel("clocksource=acpi_pm")),
    option("jiffies", X86, Change::Kernel("clocksource=jiffies")),
    option("notsc", X86, Change::Kernel("notsc")),
    option("tsc=unstable", X86, Change::Kernel("tsc=unstable")),
    option("vdso=0", X86, Change::Kernel("vdso=0")),
    option("vdso32=0", X86, Change::Kernel("vdso32=0")),
    option("notimer", &["armhf"], VEXPRESS),
    // After January 2038, when a 32-bit time_t overflows. Kernels for arm refuse such a time from
    // the clock chip.
    option("2040", X86, Change::Qemu(&["-rtc", "base=2040-01-01T00:00:00"])),
    option("2040", ARM, Change::Clock(2_208_988_800)),
    option("2cpus", ALL, Change::Qemu(&["-smp", "2"])),
    // A CPU whose counter has a self-synchronized view.
    option("ecv", &["arm64"], Change::Qemu(&["-cpu", "max,pauth-impdef=on"])),
];
