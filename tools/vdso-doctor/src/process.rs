//! The vDSO of another process, from /proc/PID/auxv and /proc/PID/mem.

use std::ffi::CStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::thread;
use std::time::Duration;

use object::{Object as _, ObjectSection as _};
use vdso_time::Errno;
use vdso_time::elf::{Image, ParseError};

use crate::json::json;

/// The vDSO of a process, for profilers and unwinders.
///
/// The process may be a 32-bit one, and may be in another container or time namespace.
///
/// # Examples
///
/// ```
/// let vdso = match vdso_doctor::ProcessVdso::read(std::process::id()) {
///     Ok(vdso) => vdso,
///     Err(error) => return eprintln!("{error}"),
/// };
/// for symbol in &vdso.symbols {
///     println!("{:#x?} {}", symbol.range, symbol.name);
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessVdso {
    /// The process ID.
    pub pid: u32,
    /// The addresses of the mapping in the process.
    pub range: Range<u64>,
    /// A copy of the mapping: an ELF file, with section headers if the kernel maps them.
    pub bytes: Vec<u8>,
    /// The GNU build id, in hexadecimal digits.
    pub build_id: Option<String>,
    /// The addresses of `.eh_frame_hdr`, if the image has section headers.
    pub eh_frame_hdr: Option<Range<u64>>,
    /// The symbols that can be called.
    pub symbols: Vec<ProcessSymbol>,
}

/// A symbol of another process's vDSO.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessSymbol {
    /// Its name; empty if the kernel blanked it.
    pub name: String,
    /// Its version, such as `LINUX_2.6`.
    pub version: Option<String>,
    /// The addresses of the symbol's code in the process. The range is empty if the image does not
    /// give the size of the code.
    pub range: Range<u64>,
}

json!(ProcessSymbol, |symbol| name, version, range);

/// Why the vDSO of a process cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessError {
    /// The process does not exist, has ended, is a kernel thread, is hidden by hidepid, or keeps
    /// executing other programs.
    Ended,
    /// The /proc of this process's PID namespace is not mounted.
    NoProc,
    /// This process is not allowed to read the other's memory.
    Denied,
    /// The process has no vDSO, so each of its clock reads is a system call.
    NoVdso,
    /// The process removed its vDSO, or moved it.
    Unmapped,
    /// The process runs in a gVisor sandbox. The kernel outside does not know gVisor's vDSO.
    Sandboxed,
    /// The bytes at the address of the vDSO are not a valid image.
    Malformed(ParseError),
    /// Another error of the kernel.
    Other(Errno),
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => {
                "there is no such process, it is a kernel thread, or /proc hides it (hidepid): check the id with \
                 `ps -p PID` as root"
            }
            Self::NoProc => {
                "there is no /proc of this PID namespace: run this program with `unshare --mount-proc` as root"
            }
            Self::Denied => {
                "the kernel denies access to its memory: run as root with CAP_SYS_PTRACE (`docker run --cap-add \
                 SYS_PTRACE`, or on the host)"
            }
            Self::NoVdso => "it has no vDSO, so each of its clock reads is a system call",
            Self::Unmapped => "it has removed or moved its vDSO, or removed the address of its vDSO",
            Self::Sandboxed => {
                "it runs in gVisor, and its reads cannot be seen from outside: run vdso-doctor in the sandbox"
            }
            Self::Malformed(error) => return write!(f, "its vDSO is malformed: {error}"),
            Self::Other(error) => return write!(f, "its memory cannot be read: {error}"),
        })
    }
}

impl std::error::Error for ProcessError {}

impl ProcessError {
    /// Returns what an error of a file in /proc/PID means for the process.
    #[allow(clippy::needless_pass_by_value, reason = "`map_err` passes it so")]
    fn of_file(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOENT) if fs::metadata("/proc/self").is_err() => Self::NoProc,
            Some(libc::ENOENT | libc::ESRCH) => Self::Ended,
            Some(libc::EACCES | libc::EPERM) => Self::Denied,
            Some(libc::EIO | libc::EFAULT) => Self::Unmapped,
            Some(number) => match Errno::from_raw_os_error(number) {
                Some(error) => Self::Other(error),
                None => Self::Other(Errno::EFAULT),
            },
            None => Self::Other(Errno::EFAULT),
        }
    }
}

impl ProcessVdso {
    /// Reads the vDSO of a process. The process is not stopped.
    ///
    /// # Errors
    /// A [`ProcessError`] says why the vDSO cannot be read.
    pub fn read(pid: u32) -> Result<Self, ProcessError> {
        let (_, first) = living_thread(pid)?;
        let mut copy = Err(ProcessError::Ended);
        let mut is_constant = true;
        for _ in 0..MOST_TRIES {
            let (thread, auxv) = living_thread(pid)?;
            copy = CopiedImage::of(thread, &auxv);
            // While the process executes another program, its auxiliary vector is not complete, and
            // the bytes of the copy may come from both programs. So a copy counts only if the
            // vector is complete (it has `AT_PHENT`), and is the same after the copy as before.
            let (_, after) = living_thread(pid)?;
            let is_same = after == auxv;
            if is_same && value(&auxv, AT_PHENT).is_some() {
                return Self::parse(pid, copy?);
            }
            is_constant &= is_same && auxv == first;
            thread::sleep(Duration::from_millis(1));
        }
        // If the vector was the same in all attempts, the process is not executing other programs.
        // The vector lacks `AT_PHENT` because the process has removed it (PR_SET_MM of prctl(2)).
        match copy {
            Err(ProcessError::NoVdso) if is_constant => Err(ProcessError::Unmapped),
            Err(error) if is_constant => Err(error),
            _ => Err(ProcessError::Ended),
        }
    }

    fn parse(pid: u32, copy: CopiedImage) -> Result<Self, ProcessError> {
        let image = Image::parse(&copy.bytes).map_err(ProcessError::Malformed)?;
        let range = copy.base..copy.base.wrapping_add(copy.bytes.len() as u64);
        // The process can write any size into the image. So each range is cut at the end of the
        // image.
        let part = |value: u64, size: u64| {
            let start = value.wrapping_sub(image.origin()).wrapping_add(copy.base);
            start..start.saturating_add(size).min(range.end)
        };
        let mut symbols = Vec::new();
        for symbol in image.symbols() {
            let mut value = symbol.value();
            // Bit 0 is not part of the address: it is set for Thumb code.
            if image.machine() == EM_ARM {
                value &= !1;
            }
            symbols.push(ProcessSymbol {
                name: owned(symbol.name()),
                version: symbol.version().map(owned),
                range: part(value, symbol.size()),
            });
        }
        let mut build_id = None;
        let mut eh_frame_hdr = None;
        if let Some(file) = with_few_sections(&copy.bytes) {
            if let Ok(Some(id)) = file.build_id() {
                build_id = Some(hexadecimal(id));
            }
            if let Some(section) = file.section_by_name(".eh_frame_hdr") {
                let frames = part(section.address(), section.size());
                if range.contains(&frames.start) && !frames.is_empty() {
                    eh_frame_hdr = Some(frames);
                }
            }
        }
        Ok(Self {
            pid,
            range,
            bytes: copy.bytes,
            build_id,
            eh_frame_hdr,
            symbols,
        })
    }

    /// Returns the parsed image.
    ///
    /// # Panics
    /// If `bytes` was changed, and is no longer a valid image.
    #[must_use]
    pub fn image(&self) -> Image<'_> {
        Image::parse(&self.bytes).expect("these bytes were parsed before")
    }

    /// Returns the symbol whose code contains a program counter of the process.
    #[must_use]
    pub fn symbol_at(&self, pc: u64) -> Option<&ProcessSymbol> {
        self.symbols
            .iter()
            .find(|symbol| symbol.range.contains(&pc))
    }
}

/// A copy of an image, and its address in the process.
struct CopiedImage {
    base: u64,
    bytes: Vec<u8>,
}

impl CopiedImage {
    fn of(thread: u32, auxv: &[u8]) -> Result<Self, ProcessError> {
        match Self::unless_sandboxed(thread, auxv) {
            // gVisor removes the host kernel's vDSO from the programs that it runs, so a missing
            // vDSO can mean gVisor.
            Err(ProcessError::NoVdso | ProcessError::Unmapped) if is_in_gvisor(thread) => {
                Err(ProcessError::Sandboxed)
            }
            other => other,
        }
    }

    fn unless_sandboxed(thread: u32, auxv: &[u8]) -> Result<Self, ProcessError> {
        // The open file keeps referring to the memory of the program that runs now, even if the
        // process executes another one.
        let memory = File::open(format!("/proc/{thread}/mem")).map_err(ProcessError::of_file)?;
        let base = value(auxv, AT_SYSINFO_EHDR).unwrap_or(0);
        if base == 0 {
            return Err(ProcessError::NoVdso);
        }
        let mut head = [0; 4096];
        read_exactly(&memory, &mut head, base)?;
        let extent = Image::extent(&head).map_err(ProcessError::Malformed)?;
        let mapped = mapping_at(thread, base).unwrap_or(0);
        let mut bytes = vec![0; mapped.clamp(extent, MOST_BYTES)];
        read_exactly(&memory, &mut bytes, base)?;
        Ok(Self { base, bytes })
    }
}

/// Returns whether a process maps the file that is the memory of a gVisor sandbox.
fn is_in_gvisor(thread: u32) -> bool {
    match text(thread, "maps") {
        Ok(maps) => maps.contains("memfd:runsc-memory"),
        Err(_) => false,
    }
}

fn owned(name: &CStr) -> String {
    name.to_string_lossy().into_owned()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

/// Parses the image as a file with sections. Returns `None` if the image cannot be parsed, or has
/// so many sections that a search would take long: it may read the whole image for each section.
fn with_few_sections(bytes: &[u8]) -> Option<object::File<'_>> {
    let file = object::File::parse(bytes).ok()?;
    if file.sections().count() > MOST_SECTIONS {
        return None;
    }
    Some(file)
}

/// `e_machine` of 32-bit arm.
const EM_ARM: u16 = 40;

/// The maximum number of attempts to read a process while it executes another program. The attempts
/// are a millisecond apart.
const MOST_TRIES: u32 = 100;

/// Tags of the auxiliary vector: the size of a program header, and where the vDSO is.
const AT_PHENT: u64 = 4;
const AT_SYSINFO_EHDR: u64 = 33;

/// The maximum size of an image, in bytes. No vDSO is larger.
const MOST_BYTES: usize = 1 << 20;

/// The maximum number of sections. The kernel's vDSOs have about 20.
const MOST_SECTIONS: usize = 100;

/// Reads memory of a process. If fewer bytes can be read, the process has ended or has executed
/// another program.
fn read_exactly(memory: &File, bytes: &mut [u8], address: u64) -> Result<(), ProcessError> {
    memory
        .read_exact_at(bytes, address)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ProcessError::Ended,
            _ => ProcessError::of_file(error),
        })
}

/// Returns the value of a tag in an auxiliary vector. The vector has 64-bit or 32-bit words: the
/// value of [`AT_PHENT`] tells which. Returns `None` if the vector does not have the tag.
fn value(auxv: &[u8], tag: u64) -> Option<u64> {
    if value_in_words_of::<8>(auxv, AT_PHENT) == Some(56) {
        return value_in_words_of::<8>(auxv, tag);
    }
    if value_in_words_of::<4>(auxv, AT_PHENT) == Some(32) {
        return value_in_words_of::<4>(auxv, tag);
    }
    None
}

fn value_in_words_of<const WIDTH: usize>(auxv: &[u8], tag: u64) -> Option<u64> {
    for entry in auxv.chunks_exact(2 * WIDTH) {
        if word(&entry[..WIDTH]) == tag {
            return Some(word(&entry[WIDTH..]));
        }
    }
    None
}

/// Decodes a number of 8 or 4 bytes.
fn word(bytes: &[u8]) -> u64 {
    if let Ok(bytes) = bytes.try_into() {
        return u64::from_ne_bytes(bytes);
    }
    let bytes = bytes.try_into().unwrap_or_default();
    u64::from(u32::from_ne_bytes(bytes))
}

/// Returns a thread of a process, and the auxiliary vector that was read from this thread's files.
/// The thread still has the process's memory.
///
/// A main thread that has ended keeps its thread ID, but has no memory any more. If root reads its
/// vector, the vector is empty, or with a newer kernel the read fails with ESRCH. For other users
/// the read fails with EACCES, because the files of a thread without memory belong to root.
pub(crate) fn living_thread(pid: u32) -> Result<(u32, Vec<u8>), ProcessError> {
    let of_main = auxiliary_vector(pid);
    if of_main != Err(ProcessError::Ended) {
        return Ok((pid, of_main?));
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_err(ProcessError::of_file)?;
    for thread in threads.flatten() {
        let name = thread.file_name();
        let Ok(thread) = name.to_string_lossy().parse() else {
            continue;
        };
        let vector = auxiliary_vector(thread);
        if vector != Err(ProcessError::Ended) {
            return Ok((thread, vector?));
        }
    }
    Err(ProcessError::Ended)
}

fn auxiliary_vector(thread: u32) -> Result<Vec<u8>, ProcessError> {
    let vector = fs::read(format!("/proc/{thread}/auxv")).map_err(ProcessError::of_file);
    match vector {
        Ok(vector) if vector.is_empty() => Err(ProcessError::Ended),
        Err(ProcessError::Denied) if has_no_memory(thread) => Err(ProcessError::Ended),
        other => other,
    }
}

/// Returns whether a thread has no memory: it has ended and is a zombie (`Z`) or is being removed
/// (`X`), or it is a kernel thread.
///
/// Every user may read /proc/PID/stat. It contains the number, the name in parentheses, the state,
/// five more numbers, and the flags.
fn has_no_memory(thread: u32) -> bool {
    /// `PF_KTHREAD` of include/linux/sched.h.
    const KERNEL_THREAD: u32 = 0x0020_0000;
    let Ok(stat) = text(thread, "stat") else {
        return false;
    };
    // The process chose its name, which can contain anything.
    let Some((_, fields)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = fields.split(' ');
    let state = fields.next();
    let flags = fields.nth(5).unwrap_or_default();
    let flags: u32 = flags.parse().unwrap_or(0);
    matches!(state, Some("Z" | "X")) || flags & KERNEL_THREAD != 0
}

/// Returns this process's ID in /proc, which can be its ID in an outer PID namespace.
pub(crate) fn own_number() -> Option<u32> {
    fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

/// Reads a file of /proc/PID. Names of programs and files need not be UTF-8.
pub(crate) fn text(pid: u32, file: &str) -> Result<String, ProcessError> {
    let text = fs::read(format!("/proc/{pid}/{file}")).map_err(ProcessError::of_file)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the size of the mapping that begins at `base`.
fn mapping_at(pid: u32, base: u64) -> Option<usize> {
    let maps = text(pid, "maps").ok()?;
    for line in maps.lines() {
        let (start, rest) = line.split_once('-')?;
        if u64::from_str_radix(start, 16).ok()? == base {
            let end = rest.split(' ').next()?;
            let end = u64::from_str_radix(end, 16).ok()?;
            return Some((end - base) as usize);
        }
    }
    None
}
