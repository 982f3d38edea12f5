//! [`explain`]: why a read of a clock costs what it costs, and what to do about it.

#![forbid(unsafe_code)]

use core::ffi::CStr;
use core::{fmt, str};

use crate::arch::ARCH;
use crate::choice::FallbackReason;
use crate::process::kernel::read_file;
use crate::read_cost::{ReadCost, is_in_no_vdso, read_cost};
use crate::routes::Route;
use crate::sys::{calls, routes};
use crate::types::ClockId;

/// Defines the causes, each with its name, its reason and its advice.
macro_rules! causes {
    ($($(#[$doc:meta])+ $Cause:ident = $name:literal, $reason:literal, $advice:literal;)+) => {
        /// Why a read of a clock costs what it costs on this machine.
        ///
        /// `Display` writes the reason, a period, and the advice.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Cause {
            $($(#[$doc])+ $Cause,)+
        }

        impl Cause {
            // For the tests of the packages that use `Cause`.
            #[doc(hidden)]
            pub const ALL: &[Self] = &[$(Self::$Cause),+];

            /// Returns a name that programs can compare, such as `clock-source`. Later versions do
            /// not change it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Cause => $name),+ }
            }

            /// Returns why the read costs what it costs, as a clause: "the vDSO cannot read ...".
            #[must_use]
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$Cause => $reason),+ }
            }

            /// Returns what to do about it, as a sentence.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$Cause => $advice),+ }
            }
        }
    };
}

causes! {
    /// The vDSO answers in user space.
    Fine = "fine",
        "the vDSO answers in user space",
        "There is nothing to do.";
    /// A read costs as much as a system call, although it does not enter this kernel: a hypervisor
    /// traps reads of the counter. Only vdso-doctor reports this cause.
    Slow = "slow",
        "a hypervisor traps reads of the counter",
        "Choose another clock source, or read the clock less often.";
    /// The cost is unknown, because the measurement was inconclusive, or because libc or Rust's
    /// standard library reads the clock on this target. vdso-doctor also reports this cause if it
    /// cannot prove where the clock is read.
    CannotTell = "cannot-tell",
        "it is unknown where the clock is read",
        "Run vdso-doctor, which can prove it.";
    /// An emulator answers, or valgrind hides the vDSO. Only vdso-doctor reports this cause.
    Emulated = "emulated",
        "an emulator answers instead of the kernel's vDSO",
        "Run the program without it.";
    /// The process has no vDSO that it can call. It has none, or one that is malformed, unreadable
    /// or for another architecture, or a sandbox kept the first call from finding it.
    NoVdso = "no-vdso",
        "this process has no vDSO that it can call",
        "Check the kernel's parameters, how it was built, and which program started this process. In \
         a sandbox, make a first call before the process enters it.";
    /// The kernel found no timer that user space can read (arm).
    BlankedNames = "blanked-names",
        "the kernel found no timer that user space can read, and blanked its vDSO's names",
        "Describe the generic timer in the device tree as arm,armv7-timer. Remove \
         arm,cpu-registers-not-fw-configured only if the firmware sets the timer's registers on \
         every CPU.";
    /// The vDSO has no function for the call, or has one that must not be called.
    NoFunction = "no-function",
        "this kernel's vDSO has no usable function for this call",
        "A newer kernel may have it.";
    /// A read fails: the kernel has no such clock, a sandbox denies the call, the clock's driver
    /// fails, or only 32-bit calls answer after January 2038.
    Refused = "refused",
        "the kernel or a sandbox refuses the read",
        "The error of clock_gettime() shows why. Use another clock, or allow the call in the sandbox.";
    /// This kernel's vDSO does not read this clock. Some clocks are not read by any kernel's vDSO.
    ClockNotServed = "clock-not-served",
        "the vDSO does not read this clock",
        "Use a clock that it reads, such as CLOCK_MONOTONIC.";
    /// Only the kernel can read the clock source, or the host decides whether user space can.
    ClockSource = "clock-source",
        "the vDSO cannot read the kernel's clock source",
        "See current_clocksource and available_clocksource in \
         /sys/devices/system/clocksource/clocksource0, and docs/CLOCK_SOURCES.md.";
    /// The kernel has marked the CPU's counter unreliable, or arm's timer has an erratum.
    CounterDistrusted = "counter-distrusted",
        "the kernel does not trust the CPU's counter",
        "`sudo dmesg | grep -i -e tsc -e arch_timer -e clocksource` shows why.";
    /// The kernel started a moment ago, and may still be measuring the CPU's counter. Only
    /// vdso-doctor reports this cause.
    NotYet = "not-yet",
        "this kernel started a moment ago and may still be measuring the CPU's counter",
        "Check again in a few seconds.";
    /// The process runs under gVisor, WSL 1 or user-mode Linux, and the vDSO makes a system call
    /// for every read. In gVisor it does so until gVisor has measured the counter. Only vdso-doctor
    /// reports this cause.
    GuestKernel = "guest-kernel",
        "the vDSO of gVisor, WSL 1 or user-mode Linux makes a system call",
        "Read the clock less often.";
    /// User space can read the clock source, but the vDSO enters the kernel, for an unknown reason.
    Unexplained = "unexplained",
        "the vDSO makes a system call, and the clock source does not explain it",
        "Run vdso-doctor, which looks for more causes.";
    /// Some reads of a clock entered the kernel, and some did not. Only vdso-doctor reports this
    /// cause.
    Sometimes = "sometimes",
        "either the clock source changed, or not every CPU can read it",
        "Check again.";
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.reason(), self.advice())
    }
}

/// Explains why a read of this clock with [`clock_gettime`](crate::clock_gettime()) costs what it
/// costs.
///
/// A program should not compare the name of the kernel's clock source with a list of fast ones,
/// because no such list is right everywhere: `kvm-clock` and `xen` are fast on one host and slow on
/// another, and a list that was made on x86, with `tsc`, lacks `arch_sys_counter`, its counterpart
/// on arm. This function measures the cost ([`read_cost`]), and uses the name only to explain it.
///
/// The answer holds for the moment of the call. The call takes a few microseconds, makes the system
/// call clock_gettime(2) at most 40 times (91 times in a 32-bit program whose sandbox denies
/// clock_gettime64(2)), and reads two files of /sys if the vDSO's reads enter the kernel. A sandbox
/// may deny these calls or hide the files, so call `explain` before the program enters the sandbox.
///
/// # Examples
///
/// ```
/// use vdso_time::{Cause, ClockId, explain};
///
/// match explain(ClockId::MONOTONIC) {
///     Cause::Fine | Cause::CannotTell => {}
///     cause => eprintln!("warning: reads of the clock are slow: {cause}"),
/// }
/// ```
#[must_use]
pub fn explain(clock: ClockId) -> Cause {
    if calls::clock_gettime(clock).is_err() {
        return Cause::Refused;
    }
    let mut facts = Facts {
        clock,
        cost: read_cost(clock),
        monotonic_cost: ReadCost::Unknown,
        route: routes().clock_gettime,
        architecture: ARCH.unwrap_or_default(),
        current: "",
        available: "",
    };
    let mut current = [0; NAMES_SIZE];
    let mut available = [0; NAMES_SIZE];
    // The other facts explain nothing about a clock that no vDSO reads.
    if facts.cost == ReadCost::SystemCall && !is_in_no_vdso(clock) {
        // A second measurement of the same clock could contradict the first one.
        if clock != ClockId::MONOTONIC {
            facts.monotonic_cost = read_cost(ClockId::MONOTONIC);
        }
        facts.current = read_names(CURRENT, &mut current);
        facts.available = read_names(AVAILABLE, &mut available);
    }
    facts.cause()
}

/// The facts from which the cause is determined.
struct Facts<'a> {
    clock: ClockId,
    cost: ReadCost,
    /// The cost of a read of `CLOCK_MONOTONIC`, or `Unknown` if it was not measured separately.
    monotonic_cost: ReadCost,
    route: Route,
    architecture: &'a str,
    current: &'a str,
    available: &'a str,
}

impl Facts<'_> {
    fn cause(&self) -> Cause {
        match self.route {
            Route::Vdso { .. } => {}
            Route::Syscall { reason, .. } => return reason.into(),
            _ => return Cause::CannotTell,
        }
        // There are clocks that no kernel's vDSO reads. For such a clock, the cause is
        // `ClockNotServed`. The measured cost is ignored, because an emulator or a busy machine can
        // disturb the measurement.
        if is_in_no_vdso(self.clock) {
            return Cause::ClockNotServed;
        }
        match self.cost {
            ReadCost::FunctionCall => return Cause::Fine,
            ReadCost::Unknown => return Cause::CannotTell,
            ReadCost::SystemCall => {}
        }
        // If the vDSO reads `CLOCK_MONOTONIC` in user space, it can read the clock source. So the
        // reads of `self.clock` are slow for another reason: the vDSO does not read that clock.
        if self.monotonic_cost == ReadCost::FunctionCall {
            return Cause::ClockNotServed;
        }
        Cause::of_clock_source(self.architecture, self.current, self.available)
    }
}

const CURRENT: &CStr = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &CStr = c"/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// The size of a buffer for the names of all clock sources that a kernel offers. No kernel is known
/// to offer more than six clock sources.
const NAMES_SIZE: usize = 256;

/// Returns the names in a file of sysfs, or an empty string if the file cannot be read.
fn read_names<'a>(path: &CStr, bytes: &'a mut [u8; NAMES_SIZE]) -> &'a str {
    let mut words = [0_usize; NAMES_SIZE / size_of::<usize>()];
    if read_file(path, &mut words).is_err() {
        return "";
    }
    let read = words.into_iter().flat_map(usize::to_ne_bytes);
    for (byte, value) in bytes.iter_mut().zip(read) {
        *byte = value;
    }
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    // We use `trim_ascii`, because `trim` contains a panic that the compiler of Rust 1.85 does not
    // remove from 32-bit programs.
    str::from_utf8(text).unwrap_or_default().trim_ascii()
}

impl From<FallbackReason> for Cause {
    fn from(reason: FallbackReason) -> Self {
        match reason {
            FallbackReason::NoVdso(_) | FallbackReason::ForeignImage => Self::NoVdso,
            FallbackReason::BlankedNames => Self::BlankedNames,
            FallbackReason::NoSymbol | FallbackReason::NonzeroLoadAddress => Self::NoFunction,
        }
    }
}

/// The clock sources that the vDSO can read on every host.
const READABLE: [&str; 7] = [
    "tsc",
    "arch_sys_counter",
    "riscv_clocksource",
    "tod",
    "Constant",
    "timebase",
    "hyperv_clocksource_tsc_page",
];

/// The clock sources that the vDSO reads only if the hypervisor says that the counter is the same
/// on all CPUs (`PVCLOCK_TSC_STABLE_BIT`).
const READABLE_IF_STABLE: [&str; 2] = ["kvm-clock", "xen"];

impl Cause {
    /// Returns why the vDSO asks the kernel for the time, on a machine where it does.
    ///
    /// `current` is the machine's clock source, and `available` are the clock sources that its
    /// kernel offers, separated by spaces, as in sysfs. `architecture` is spelled as in
    /// [`ARCH`](crate::ARCH). To explain the reads of this machine, call [`explain`], which
    /// measures the cost first.
    ///
    /// The first row that applies is the answer:
    ///
    /// | clock source | cause |
    /// |---|---|
    /// | unknown | `Unexplained` |
    /// | arm's own timer | `CounterDistrusted`, because of an erratum |
    /// | another one that the vDSO reads | `Unexplained` |
    /// | one that the host decides about, or `tsc-early` | `ClockSource` |
    /// | any other, if the kernel offers one that the vDSO may be able to read | `ClockSource` |
    /// | any other on x86, because its kernel does not offer `tsc` | `CounterDistrusted` |
    /// | any other | `ClockSource` |
    #[must_use]
    pub fn of_clock_source(architecture: &str, current: &str, available: &str) -> Self {
        if current.is_empty() {
            return Self::Unexplained;
        }
        // The vDSO reads arm's timer in user space, unless the timer has an erratum for which only
        // the kernel has a workaround. So a vDSO that enters the kernel means such an erratum.
        if current == "arch_sys_counter" {
            return Self::CounterDistrusted;
        }
        if READABLE.contains(&current) {
            return Self::Unexplained;
        }
        let may_be_readable = |name: &[u8]| {
            let mut readable = READABLE.iter().chain(&READABLE_IF_STABLE);
            readable.any(|known| known.as_bytes() == name)
        };
        // We split the bytes and not the `str`, because `str::split` contains a panic that the
        // compiler of Rust 1.85 does not remove from 32-bit programs.
        let mut offered = available.as_bytes().split(|byte| *byte == b' ');
        let is_of_host =
            READABLE_IF_STABLE.contains(&current) || current == "hyperv_clocksource_msr";
        // A kernel whose clock source is still `tsc-early` is about to choose `tsc`.
        let is_early = current == "tsc-early";
        if is_of_host || is_early || offered.any(may_be_readable) {
            return Self::ClockSource;
        }
        // Every x86 CPU since the Pentium has a TSC. A kernel that does not offer `tsc` has found
        // the TSC to be unreliable.
        if architecture == "x86" || architecture == "x86_64" {
            return Self::CounterDistrusted;
        }
        Self::ClockSource
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, Facts};
    use crate::choice::{FallbackReason, LocateError};
    use crate::read_cost::ReadCost;
    use crate::routes::Route;
    use crate::types::ClockId;

    const VDSO: Route = Route::Vdso {
        symbol: "__vdso_clock_gettime",
        version: None,
        address: 0,
    };

    /// Returns the cause for `CLOCK_MONOTONIC` on a machine whose vDSO has `clock_gettime`.
    fn cause(cost: ReadCost, architecture: &str, current: &str, available: &str) -> Cause {
        let facts = Facts {
            clock: ClockId::MONOTONIC,
            cost,
            monotonic_cost: cost,
            route: VDSO,
            architecture,
            current,
            available,
        };
        facts.cause()
    }

    /// Each row describes a machine. The rows with an issue number are machines on which a
    /// database's own check of the clock was wrong, or took 50 ms. The cause never depends on the
    /// name of the clock source alone: the name only explains a read that was measured to be slow.
    #[test]
    fn a_cheap_read_is_fine_on_each_machine_and_a_slow_one_has_its_cause() {
        use Cause::{ClockSource, CounterDistrusted, Unexplained};
        for (architecture, current, available, if_slow) in [
            // valkey#4269, an arm64 server. Its vDSO is slow only if the timer has an erratum.
            (
                "aarch64",
                "arch_sys_counter",
                "arch_sys_counter",
                CounterDistrusted,
            ),
            // ClickHouse#41111, a guest of KVM. The host decides whether its vDSO is slow.
            ("x86_64", "kvm-clock", "kvm-clock tsc acpi_pm", ClockSource),
            ("x86_64", "kvm-clock", "kvm-clock", ClockSource),
            // redis#10604, EC2 under Xen. A read took 596 ns with `xen`, and 27 ns with `tsc`.
            ("x86_64", "xen", "xen tsc hpet acpi_pm", ClockSource),
            ("x86_64", "tsc", "xen tsc hpet acpi_pm", Unexplained),
            ("x86_64", "hpet", "hpet tsc acpi_pm", ClockSource),
            ("x86_64", "hpet", "hpet acpi_pm", CounterDistrusted),
            ("x86", "acpi_pm", "acpi_pm", CounterDistrusted),
            ("arm", "dmtimer", "dmtimer", ClockSource),
            (
                "x86_64",
                "hyperv_clocksource_msr",
                "hyperv_clocksource_msr",
                ClockSource,
            ),
            ("x86_64", "jiffies", "tsc-early jiffies", CounterDistrusted),
            // gVisor has no files that name clock sources, so both strings are empty. In an
            // emulator, a program sees the files of the host, which the other rows represent.
            ("x86_64", "", "", Unexplained),
            (
                "riscv64",
                "riscv_clocksource",
                "riscv_clocksource",
                Unexplained,
            ),
        ] {
            let seen = |cost| cause(cost, architecture, current, available);
            assert_eq!(seen(ReadCost::FunctionCall), Cause::Fine, "{current}");
            assert_eq!(seen(ReadCost::Unknown), Cause::CannotTell, "{current}");
            assert_eq!(seen(ReadCost::SystemCall), if_slow, "{current}");
        }
    }

    /// The C interface says that a buffer of 256 bytes is enough for `Display` and a NUL.
    #[test]
    fn each_explanation_fits_in_the_buffer_of_a_c_program() {
        for cause in Cause::ALL {
            let length = cause.reason().len() + ". ".len() + cause.advice().len();
            assert!(length < 256, "{}: {length} bytes", cause.name());
        }
    }

    #[test]
    fn a_slow_clock_beside_a_cheap_one_is_not_the_fault_of_the_clock_source() {
        let fine = ReadCost::FunctionCall;
        let slow = ReadCost::SystemCall;
        for (clock, monotonic_cost, expected) in [
            (ClockId::TAI, fine, Cause::ClockNotServed),
            (ClockId::TAI, slow, Cause::ClockSource),
            (ClockId::THREAD_CPUTIME, slow, Cause::ClockNotServed),
            (ClockId::BOOTTIME_ALARM, slow, Cause::ClockNotServed),
            (ClockId::thread_cpu(1), slow, Cause::ClockNotServed),
        ] {
            let facts = Facts {
                clock,
                cost: slow,
                monotonic_cost,
                route: VDSO,
                architecture: "x86_64",
                current: "hpet",
                available: "hpet tsc",
            };
            assert_eq!(facts.cause(), expected, "{clock}");
        }
    }

    #[test]
    fn a_missing_vdso_comes_before_the_clock_source() {
        for (reason, expected) in [
            (FallbackReason::NoVdso(LocateError::Absent), Cause::NoVdso),
            (FallbackReason::ForeignImage, Cause::NoVdso),
            (FallbackReason::BlankedNames, Cause::BlankedNames),
            (FallbackReason::NoSymbol, Cause::NoFunction),
        ] {
            let facts = Facts {
                clock: ClockId::MONOTONIC,
                cost: ReadCost::SystemCall,
                monotonic_cost: ReadCost::SystemCall,
                route: Route::Syscall { number: 0, reason },
                architecture: "x86_64",
                current: "hpet",
                available: "hpet tsc",
            };
            assert_eq!(facts.cause(), expected);
        }
    }

    #[test]
    fn each_cause_has_a_name_a_clause_and_a_sentence() {
        for cause in Cause::ALL {
            let is_kebab_case = |letter: char| letter.is_ascii_lowercase() || letter == '-';
            assert!(cause.name().chars().all(is_kebab_case), "{cause}");
            assert!(!cause.reason().ends_with('.'), "{cause}");
            assert!(cause.advice().ends_with('.'), "{cause}");
        }
    }
}
