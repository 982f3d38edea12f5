//! What clock reads cost in another process.

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
/// The doctor does not run the other process's code. If the image is the doctor's own, its proof
/// holds for that process too. Otherwise the clock source, which all processes share, indicates
/// where reads are answered.
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
    /// The same as a sentence.
    pub verdict: String,
    /// The doctor's own reads.
    pub measurements: Vec<Measurement>,
}

json!(ProcessDiagnosis, |this|
    format, name, pid: this.vdso.pid, range: this.vdso.range, build_id: this.vdso.build_id,
    eh_frame_hdr: this.vdso.eh_frame_hdr, symbols: this.vdso.symbols, is_own_image, location, verdict, measurements
);

impl ProcessDiagnosis {
    /// Reads the vDSO of a process, and examines the usual reads in this one.
    ///
    /// # Errors
    /// As [`ProcessVdso::read`].
    pub fn of(pid: u32) -> Result<Self, ProcessError> {
        let vdso = ProcessVdso::read(pid)?;
        let (thread, _) = living_thread(pid)?;
        let name = text(pid, "comm")?.trim_end().to_owned();
        let own_image = own_number().and_then(|own| ProcessVdso::read(own).ok());
        let is_own_image = own_image.is_some_and(|own| own.bytes == vdso.bytes);
        let reads = [Call::COARSE, Call::USUAL].concat();
        let own = Verdict::of(&reads, &Call::USUAL, CALLS_OF_A_CHECK, true);
        let routes = Routes::of_image(&vdso.image());
        let program = fs::read_link(format!("/proc/{thread}/exe")).unwrap_or_default();
        let (location, verdict) = match (routes.map(|routes| routes.clock_gettime), own.location) {
            _ if is_emulator(&program) => {
                let name = program
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .escape_debug()
                    .to_string();
                let text = format!(
                    "it is unknown where clock reads are answered: {name} emulates the program, and this is the \
                     vDSO of {name}."
                );
                (Location::Unknown, text)
            }
            (Some(Route::Syscall { reason, .. }), _) => (
                Location::Kernel,
                format!("each clock read is a system call ({reason})."),
            ),
            (Some(_), location) if is_own_image => (location, own.sentence),
            (Some(_), Location::UserSpace) => {
                let text = "clock reads likely stay in user space, because the doctor's do: the process has \
                            another vDSO, but all processes share the clock source.";
                (Location::Unknown, text.into())
            }
            (Some(_), _) => (
                Location::Unknown,
                format!(
                    "its vDSO is not the doctor's; in the doctor {}",
                    own.sentence
                ),
            ),
            (None, _) => (
                Location::Unknown,
                "vdso-time has no table for the architecture of its vDSO.".into(),
            ),
        };
        let measurements = own.check.measurements;
        Ok(Self {
            format: 1,
            name,
            vdso,
            is_own_image,
            location,
            verdict,
            measurements,
        })
    }
}

/// Returns whether a program emulates the CPU for another one, which then has a vDSO of its own.
pub(crate) fn is_emulator(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let is_user_mode = name.starts_with("qemu-") && !name.starts_with("qemu-system");
    is_user_mode
        || program
            .parent()
            .is_some_and(|folder| folder.ends_with("valgrind"))
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
            ", as the doctor's"
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
