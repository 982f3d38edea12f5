//! Names of just-in-time compiled code, which its compiler appends to /tmp/perf-PID.map.
//!
//! The kernel's records of new mappings do not show when this file has new names. If a compiler
//! writes code into memory that is already mapped, the kernel writes no record, so only the file
//! shows that there is new code. If the compiler changes a mapping, the kernel writes a record, but
//! a compiler can change mappings every millisecond. The file can be a hundred megabytes long, so
//! reading it after each record would take too long. Instead, the file is checked ten times a
//! second, and immediately when an address is looked up that has no known name. Only the new lines
//! of the file are read. The names stay in the file, and only their offsets are kept in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::bounded::has_room;
use super::file;
use super::names::{MOST_OF_NAME, start_of};
use crate::proc;

/// For how long the known name of an address is used before the file is checked for a later one.
const PAUSE: Duration = Duration::from_millis(100);

/// How many bytes are read in one call.
const CHUNK: usize = 1 << 20;
/// How many of the last bytes that were read are compared with the file's, to notice that the file
/// was rewritten.
const END: usize = 64;
/// The maximum number of bytes that are read from the map of a process and its earlier versions.
const MOST_BYTES: u64 = 1 << 30;

/// What is at the path of a process's map.
pub(super) enum Opened {
    Map(File),
    /// The map of an earlier process that had the same id.
    Stale,
    /// No map, or a map that another user wrote.
    Nothing,
}

/// How much older than its process a map can seem to be, because the clocks are not precise.
const PRECISION: Duration = Duration::from_secs(2);

/// Opens /tmp/perf-PID.map in the root directory of the process, with the id that the process has
/// in its own PID namespace.
pub(super) fn open(pid: u32, thread: u32) -> Opened {
    let numbers = proc::status(pid, "NSpid").unwrap_or_default();
    let own = numbers.split_whitespace().last().unwrap_or("self");
    let path = format!("/proc/{thread}/root/tmp/perf-{own}.map");
    // A symbolic link is not followed, because it may lead to a file that has a side effect when it
    // is read, such as /proc/kmsg.
    let Ok(file) = file::open(Path::new(&path), libc::O_NOFOLLOW) else {
        return Opened::Nothing;
    };
    let Ok(metadata) = file.metadata() else {
        return Opened::Nothing;
    };
    // Any user can write to /tmp. Like perf(1), this function therefore accepts a file only if it
    // belongs to the process's user or to root.
    let owner = metadata.uid();
    let users = proc::status(thread, "Uid").unwrap_or_default();
    let mut users = users.split_whitespace();
    if owner != 0 && users.all(|user| user != owner.to_string()) {
        return Opened::Nothing;
    }
    // A compiler writes to its map after its process has started, so a map that is older than the
    // process belongs to an earlier process.
    let unchanged = metadata
        .modified()
        .ok()
        .and_then(|time| time.elapsed().ok());
    if let (Some(unchanged), Some(age)) = (unchanged, proc::age(pid)) {
        if unchanged > age + PRECISION {
            return Opened::Stale;
        }
    }
    Opened::Map(file)
}

/// The map of a process.
#[derive(Default)]
pub(super) struct PerfMap {
    file: Option<MapFile>,
    /// How many bytes of the file were read.
    read: u64,
    /// How many bytes were read of this file and of all its earlier versions.
    read_of_all: u64,
    /// The last bytes that were read. If the file contains other bytes there now, it was rewritten.
    end: Vec<u8>,
    functions: Functions,
    looked: Option<Instant>,
    /// Whether the file is older than the process.
    pub(super) is_stale: bool,
}

/// An open map, and its device and inode.
struct MapFile {
    file: File,
    id: (u64, u64),
}

/// The functions of a map by their addresses.
type Functions = BTreeMap<u64, Function>;

struct Function {
    size: u64,
    /// The offset of its name in the file.
    name: u64,
    length: usize,
}

impl PerfMap {
    /// Returns the name of the function at an address, from the last line that contains the
    /// address.
    pub(super) fn name(&mut self, address: u64, open: impl FnOnce() -> Opened) -> Option<String> {
        let is_due = match self.looked {
            Some(looked) => looked.elapsed() >= PAUSE,
            None => true,
        };
        if is_due {
            self.looked = Some(Instant::now());
            let opened = open();
            self.is_stale = matches!(opened, Opened::Stale);
            if let Opened::Map(file) = opened {
                self.take(file);
            }
        }
        if is_due || self.function(address).is_none() || !self.has_end() {
            self.read_lines();
        }
        let function = self.function(address)?;
        let mut name = vec![0; function.length.min(MOST_OF_NAME)];
        let map = self.file.as_ref()?;
        map.file.read_exact_at(&mut name, function.name).ok()?;
        Some(start_of(&name))
    }

    /// Returns whether there is a map.
    pub(super) fn exists(&self) -> bool {
        self.file.is_some()
    }

    /// Returns whether so much was read that later lines are ignored.
    pub(super) fn is_full(&self) -> bool {
        self.read_of_all >= MOST_BYTES
    }

    fn function(&self, address: u64) -> Option<&Function> {
        let (start, function) = self.functions.range(..=address).next_back()?;
        if address - start >= function.size {
            return None;
        }
        Some(function)
    }

    /// Switches to the file that has the map's name now, if a program has replaced the known file.
    fn take(&mut self, file: File) {
        let Ok(metadata) = file.metadata() else {
            return;
        };
        let id = (metadata.dev(), metadata.ino());
        if let Some(known) = &self.file {
            if known.id == id {
                return;
            }
        }
        self.file = Some(MapFile { file, id });
        self.forget();
    }

    fn forget(&mut self) {
        self.read = 0;
        self.end.clear();
        self.functions.clear();
    }

    /// Returns whether the last bytes that were read are still in the file.
    fn has_end(&self) -> bool {
        let Some(map) = &self.file else {
            return true;
        };
        let mut end = vec![0; self.end.len()];
        let start = self.read - self.end.len() as u64;
        map.file.read_exact_at(&mut end, start).is_ok() && end == self.end
    }

    fn read_lines(&mut self) {
        if !self.has_end() {
            self.forget();
        }
        let Some(map) = &self.file else { return };
        let size = match map.file.metadata() {
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        };
        let mut chunk = Vec::new();
        while self.read < size && !self.is_full() && has_room(CHUNK as u64) {
            chunk.resize(CHUNK.min((size - self.read) as usize), 0);
            if map.file.read_exact_at(&mut chunk, self.read).is_err() {
                return;
            }
            let lines = whole_lines(&chunk);
            if lines.is_empty() {
                return;
            }
            let mut at = self.read;
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                add(&mut self.functions, line, at);
                at += line.len() as u64;
            }
            self.read = at;
            self.read_of_all += lines.len() as u64;
            self.end = lines[lines.len().saturating_sub(END)..].into();
        }
    }
}

/// Returns a chunk without its last line if that line is incomplete. A line that fills a whole
/// chunk is too long to be read as one, so its parts count as complete lines.
fn whole_lines(chunk: &[u8]) -> &[u8] {
    match chunk.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => &chunk[..=end],
        None if chunk.len() == CHUNK => chunk,
        None => &[],
    }
}

/// Adds the function of a line (an address, a size and a name). Removes the functions that begin in
/// its range, because the later line wins.
fn add(functions: &mut Functions, line: &[u8], at: u64) -> Option<()> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let start = hexadecimal(fields.next()?)?;
    let size = hexadecimal(fields.next()?)?;
    let name = fields.next()?;
    let range = start..start.saturating_add(size);
    while let Some((old, _)) = functions.range(range.clone()).next() {
        let old = *old;
        functions.remove(&old);
    }
    let function = Function {
        size,
        name: at + (line.len() - name.len()) as u64,
        length: name.trim_ascii_end().len(),
    };
    functions.insert(start, function);
    Some(())
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
#[path = "../../tests/unit/perf_map.rs"]
mod tests;
