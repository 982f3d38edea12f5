//! The cost of clock reads in another process.

use std::path::Path;
use std::{fmt, fs};

use vdso_time::{Route, Routes};

use crate::json::json;
use crate::process::{living_thread, own_number, text};
use crate::proof::{Location, Measurement};
use crate::report::{table, wrapped};
use crate::{CALLS_OF_A_CHECK, Call, ProcessError, ProcessSymbol, ProcessVdso, Verdict};

/// The vDSO of another process, and what its clock reads cost.
///
/// The doctor does not run the other process's code. If the image is the doctor's own, the doctor's
/// proof holds for that process as well. Otherwise the clock source, which all processes share,
/// indicates where reads are answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessDiagnosis {
    /// The version of this format.
    pub format: u32,
    /// The name of the process, from /proc/PID/comm.
    pub name: String,
    /// The vDSO of the process.
    pub vdso: ProcessVdso,
    /// Whether the image is the doctor's own, byte for byte.
    pub is_own_image: bool,
    /// Where `CLOCK_REALTIME` and `CLOCK_MONOTONIC` are answered.
    pub location: Location,
    /// The location as a sentence.
    pub verdict: String,
    /// The doctor's own reads.
    pub measurements: Vec<Measurement>,
}

json!(ProcessDiagnosis, |this|
    format, name, pid: this.vdso.pid, range: this.vdso.range, build_id: this.vdso.build_id,
    eh_frame_hdr: this.vdso.eh_frame_hdr, symbols: this.vdso.symbols, is_own_image, location, verdict, measurements
);

impl ProcessDiagnosis {
    /// Reads the vDSO of another process, and checks the usual reads in this process.
    ///
    /// # Errors
    /// As [`ProcessVdso::read`].
    pub fn of(pid: u32) -> Result<Self, ProcessError> {
        let vdso = ProcessVdso::read(pid)?;
        let (thread, _) = living_thread(pid)?;
        let name = text(pid, "comm")?.trim_end().to_owned();
        let is_own_image = match own_image() {
            Some(own) => own == vdso.bytes,
            None => false,
        };
        let calls = [Call::COARSE, Call::USUAL].concat();
        let own = Verdict::of(&calls, &Call::USUAL, CALLS_OF_A_CHECK, true);
        let program = fs::read_link(format!("/proc/{thread}/exe")).unwrap_or_default();
        let (location, verdict) = conclude(&vdso, is_own_image, &own, &program);
        Ok(Self {
            format: 1,
            name,
            vdso,
            is_own_image,
            location,
            verdict,
            measurements: own.check.measurements,
        })
    }
}

/// Returns the doctor's own image, or `None` if it cannot be read.
fn own_image() -> Option<Vec<u8>> {
    let own = own_number()?;
    Some(ProcessVdso::read(own).ok()?.bytes)
}

/// Concludes where a process's reads are answered, from the process's image and from the doctor's
/// own verdict.
fn conclude(
    vdso: &ProcessVdso,
    is_own_image: bool,
    own: &Verdict,
    program: &Path,
) -> (Location, String) {
    if is_emulator(program) {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let name = name.escape_debug();
        let text = format!(
            "it is unknown where clock reads are answered: {name} emulates the program, and this is the vDSO \
             of {name}."
        );
        return (Location::Unknown, text);
    }
    let Some(routes) = Routes::of_image(&vdso.image()) else {
        let text = "vdso-time has no table for the architecture of its vDSO.";
        return (Location::Unknown, text.into());
    };
    if let Route::Syscall { reason, .. } = routes.clock_gettime {
        let text = format!("each clock read is a system call, because {reason}.");
        return (Location::Kernel, text);
    }
    if is_own_image {
        return (own.location, own.sentence.clone());
    }
    let text = if own.location == Location::UserSpace {
        "clock reads probably stay in user space, because the doctor's reads do. The process has another \
         vDSO, but all processes share the clock source."
            .into()
    } else {
        let sentence = &own.sentence;
        format!(
            "it is unknown where its clock reads are answered, because its vDSO is not the doctor's. In the \
             doctor, {sentence}"
        )
    };
    (Location::Unknown, text)
}

/// The architectures that QEMU's user mode emulates, as its programs are called.
const QEMU_TARGETS: &[&str] = &[
    "aarch64",
    "aarch64_be",
    "alpha",
    "arm",
    "armeb",
    "cris",
    "hexagon",
    "hppa",
    "i386",
    "loongarch64",
    "m68k",
    "microblaze",
    "microblazeel",
    "mips",
    "mips64",
    "mips64el",
    "mipsel",
    "mipsn32",
    "mipsn32el",
    "nios2",
    "or1k",
    "ppc",
    "ppc64",
    "ppc64le",
    "riscv32",
    "riscv64",
    "s390x",
    "sh4",
    "sh4eb",
    "sparc",
    "sparc32plus",
    "sparc64",
    "x86_64",
    "xtensa",
    "xtensaeb",
];

/// Returns whether `program` emulates the CPU for another program. If so, the vDSO of the process
/// is the emulator's own, and does not tell what the emulated program calls.
///
/// QEMU's other programs, such as `qemu-system-x86_64` and `qemu-ga`, run no other program.
pub(crate) fn is_emulator(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if let Some(target) = name.strip_prefix("qemu-") {
        let target = target.strip_suffix("-static").unwrap_or(target);
        return QEMU_TARGETS.contains(&target);
    }
    // Such as `memcheck-amd64-linux`.
    let is_tool = name.ends_with("-linux");
    match program.parent() {
        Some(directory) => directory.ends_with("valgrind") && is_tool,
        None => false,
    }
}

impl fmt::Display for ProcessDiagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProcessVdso {
            pid,
            range,
            build_id,
            eh_frame_hdr,
            symbols,
            ..
        } = &self.vdso;
        // The process chose these names, and a terminal obeys control characters.
        let name = self.name.escape_debug();
        writeln!(
            f,
            "{}\n",
            wrapped("", &format!("process {pid} ({name}): {}", self.verdict))
        )?;
        let bits = 32 * u32::from(self.vdso.image().class());
        let owner = if self.is_own_image {
            ", the same as the doctor's"
        } else {
            ""
        };
        writeln!(
            f,
            "vDSO          {:#x}-{:#x}, {bits}-bit{owner}",
            range.start, range.end
        )?;
        if let Some(build_id) = build_id {
            writeln!(f, "build id      {build_id}")?;
        }
        if let Some(frames) = eh_frame_hdr {
            writeln!(f, ".eh_frame_hdr {:#x}-{:#x}", frames.start, frames.end)?;
        }
        for (index, symbol) in symbols.iter().enumerate() {
            let title = if index == 0 { "symbols" } else { "" };
            let ProcessSymbol { name, range, .. } = symbol;
            let name = name.escape_debug();
            writeln!(
                f,
                "{title:13} {:#x}, {:4} bytes: {name}",
                range.start,
                range.end - range.start
            )?;
        }
        let measurements: Vec<_> = self.measurements.iter().collect();
        write!(f, "\nthe doctor's own reads:\n{}", table(&measurements))
    }
}
