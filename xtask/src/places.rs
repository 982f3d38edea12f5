//! Where programs can run, as data: architectures, emulators, kernels, and what can be changed of a kernel's boot.

/// What programs are built for.
#[derive(Debug, PartialEq)]
pub(crate) struct Arch {
    pub(crate) name: &'static str,
    pub(crate) triple: &'static str,
    pub(crate) rustflags: &'static str,
    /// Debian's name of it.
    pub(crate) debian: &'static str,
    /// GNU's name of it: the prefix of its compiler, the folder of its libraries.
    pub(crate) gnu: &'static str,
    /// QEMU's name of it.
    pub(crate) qemu: &'static str,
    /// The machines that run its programs themselves.
    pub(crate) hosts: &'static [&'static str],
    /// The kernels that run them, the usual one first.
    pub(crate) guests: &'static [&'static str],
}

pub(crate) const ARCHES: &[Arch] = &[
    Arch {
        name: "x86_64",
        triple: "x86_64-unknown-linux-gnu",
        rustflags: "",
        debian: "amd64",
        gnu: "x86_64-linux-gnu",
        qemu: "x86_64",
        hosts: &["x86_64"],
        guests: &["amd64"],
    },
    Arch {
        name: "i686",
        triple: "i686-unknown-linux-gnu",
        rustflags: "",
        debian: "i386",
        gnu: "i686-linux-gnu",
        qemu: "i386",
        hosts: &["x86", "x86_64"],
        guests: &["i386", "amd64"],
    },
    Arch {
        name: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        rustflags: "",
        debian: "arm64",
        gnu: "aarch64-linux-gnu",
        qemu: "aarch64",
        hosts: &["aarch64"],
        guests: &["arm64"],
    },
    ARMV7,
    // The same libraries, but our code in Thumb mode.
    Arch { name: "thumbv7", rustflags: "-Ctarget-feature=+thumb-mode", ..ARMV7 },
];

const ARMV7: Arch = Arch {
    name: "armv7",
    triple: "armv7-unknown-linux-gnueabihf",
    rustflags: "",
    debian: "armhf",
    gnu: "arm-linux-gnueabihf",
    qemu: "arm",
    hosts: &["arm"],
    guests: &["armhf", "arm64"],
};

/// QEMU's user mode, of a Debian suite.
#[derive(Debug, PartialEq)]
pub(crate) struct Emulator {
    pub(crate) name: &'static str,
    pub(crate) suite: &'static str,
    pub(crate) package: &'static str,
    /// What follows the architecture in the name of the program.
    pub(crate) suffix: &'static str,
}

pub(crate) const EMULATORS: &[Emulator] = &[
    // No vDSO at all.
    Emulator { name: "qemu-7.2", suite: "bookworm", package: "qemu-user-static", suffix: "-static" },
    // A vDSO of its own, whose functions make the system call.
    Emulator { name: "qemu-10", suite: "bookworm-backports", package: "qemu-user", suffix: "" },
];

/// A machine that QEMU emulates, and Debian's kernels for it.
#[derive(Debug, PartialEq)]
pub(crate) struct Guest {
    /// Debian's name of its architecture.
    pub(crate) name: &'static str,
    /// Depends on the suite's kernel. Those for clouds are a third of the size.
    pub(crate) package: &'static str,
    pub(crate) kernels: &'static [Kernel],
    pub(crate) qemu: &'static str,
    pub(crate) machine: &'static [&'static str],
    pub(crate) console: &'static str,
    /// What the programs for it are compiled with.
    pub(crate) rustflags: &'static str,
    /// What its kernels have, in the words of the tests' `VDSO_TIME_TEST_REQUIRES`.
    pub(crate) has: &'static str,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Kernel {
    pub(crate) version: &'static str,
    pub(crate) suite: &'static str,
}

const KERNELS: &[Kernel] = &[
    Kernel { version: "5.10", suite: "bullseye" },
    Kernel { version: "6.1", suite: "bookworm" },
    Kernel { version: "6.12", suite: "trixie" },
    Kernel { version: "7", suite: "sid" },
];

/// QEMU's own CPUs have no invariant TSC, and the tests need one.
const X86_FLAGS: &str = "--cfg vdso_time_assume_invariant";
const X86_HAS: &str = "affinity clocksource-switch seccomp timens";
const ARM_HAS: &str = "affinity seccomp";

pub(crate) const GUESTS: &[Guest] = &[
    Guest {
        name: "amd64",
        package: "linux-image-cloud-amd64",
        kernels: KERNELS,
        qemu: "qemu-system-x86_64",
        // QEMU 7.2 spoils the flags in cmpxchg16b, of which a kernel dies now and then; without it, it has another way.
        machine: &["-cpu", "qemu64,-cx16"],
        console: "ttyS0",
        rustflags: X86_FLAGS,
        has: X86_HAS,
    },
    Guest {
        name: "i386",
        package: "linux-image-686",
        // Debian stopped making them.
        kernels: KERNELS.split_at(2).0,
        qemu: "qemu-system-x86_64",
        machine: &[],
        console: "ttyS0",
        rustflags: X86_FLAGS,
        has: X86_HAS,
    },
    Guest {
        name: "arm64",
        package: "linux-image-cloud-arm64",
        kernels: KERNELS,
        qemu: "qemu-system-aarch64",
        machine: &["-M", "virt", "-cpu", "cortex-a57"],
        console: "ttyAMA0",
        rustflags: "",
        has: ARM_HAS,
    },
    Guest {
        name: "armhf",
        package: "linux-image-armmp",
        kernels: KERNELS,
        qemu: "qemu-system-arm",
        machine: &["-M", "virt", "-cpu", "cortex-a15"],
        console: "ttyAMA0",
        rustflags: "",
        has: ARM_HAS,
    },
];

/// Something else than usual about a boot.
#[derive(Debug, PartialEq)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) guests: &'static [&'static str],
    pub(crate) change: Change,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Change {
    /// One more argument for the kernel.
    Kernel(&'static str),
    /// More arguments for QEMU.
    Qemu(&'static [&'static str]),
    /// Another machine, which needs a description from this kernel's package.
    Board { qemu: &'static [&'static str], tree: &'static str, from: &'static str },
    /// Init sets the wall clock, in seconds since the Epoch.
    Clock(i64),
}

impl Variant {
    /// What of the boot it sets: two changes of one setting contradict each other.
    pub(crate) fn setting(&self) -> &'static str {
        match self.change {
            Change::Kernel(argument) => argument.split_once('=').map_or(argument, |(name, _)| name),
            _ => self.name,
        }
    }
}

const X86: &[&str] = &["amd64", "i386"];
const ARM: &[&str] = &["arm64", "armhf"];
const ALL: &[&str] = &["amd64", "i386", "arm64", "armhf"];

const fn kernel(name: &'static str, guests: &'static [&'static str], argument: &'static str) -> Variant {
    Variant { name, guests, change: Change::Kernel(argument) }
}

pub(crate) const VARIANTS: &[Variant] = &[
    kernel("hpet", X86, "clocksource=hpet"),
    kernel("acpi_pm", X86, "clocksource=acpi_pm"),
    kernel("jiffies", X86, "clocksource=jiffies"),
    kernel("vdso=0", X86, "vdso=0"),
    kernel("vdso32=0", X86, "vdso32=0"),
    // No architected timer: the kernel blanks the names of the functions that would read it.
    Variant {
        name: "notimer",
        guests: &["armhf"],
        change: Change::Board {
            // It has a sound chip, for which QEMU would look here.
            qemu: &["-M", "vexpress-a9", "-audiodev", "none,id=none", "-global", "pl041.audiodev=none"],
            tree: "vexpress-v2p-ca9.dtb",
            from: "6.12",
        },
    },
    // After January 2038, where a 32-bit time_t ends.
    Variant { name: "2040", guests: X86, change: Change::Qemu(&["-rtc", "base=2040-01-01T00:00:00"]) },
    // The kernel would not take such a time from the clock chip.
    Variant { name: "2040", guests: ARM, change: Change::Clock(2_208_988_800) },
    Variant { name: "2cpus", guests: ALL, change: Change::Qemu(&["-smp", "2"]) },
];
