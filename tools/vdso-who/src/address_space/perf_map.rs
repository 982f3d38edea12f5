//! Names of just-in-time compiled code, which its compiler appends to /tmp/perf-PID.map.
//!
//! If a compiler writes code into memory that it already has, the kernel makes no record, so only
//! the file shows that there is new code. The file can have a hundred megabytes, and a compiler may
//! change a mapping each millisecond. So the file is checked ten times a second, and for an address
//! without a name. Only its new lines are read, and their names stay in the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::bounded::has_room;
use super::file;
use super::names::{MOST_OF_NAME, start_of};
use crate::proc;

/// How long a name is taken for the last one of its address.
const PAUSE: Duration = Duration::from_millis(100);

/// The bytes that are read in one call, the bytes that are compared, and the bytes of all files of
/// a process.
const CHUNK: usize = 1 << 20;
const END: usize = 64;
const MOST_BYTES: u64 = 1 << 30;

/// The file that the name of a process's map leads to.
pub(super) enum Opened {
    Map(File),
    /// The map of another process, which had the same number before.
    Stale,
    /// There is none, or another user wrote it.
    Nothing,
}

/// How much older than its process a map can be by the precision of the clocks.
const PRECISION: Duration = Duration::from_secs(2);

/// Opens /tmp/perf-PID.map in the process's file system and with the number that the process has
/// there.
pub(super) fn open(pid: u32, thread: u32) -> Opened {
    let numbers = proc::status(pid, "NSpid").unwrap_or_default();
    let own = numbers.split_whitespace().last().unwrap_or("self");
    let path = format!("/proc/{thread}/root/tmp/perf-{own}.map");
    // A link may lead to a file that has an effect when it is read, such as /proc/kmsg.
    let Ok(file) = file::open(Path::new(&path), libc::O_NOFOLLOW) else {
        return Opened::Nothing;
    };
    let Ok(metadata) = file.metadata() else {
        return Opened::Nothing;
    };
    // Any user can write to /tmp. perf(1) takes the files of the user and of root as well.
    let owner = metadata.uid();
    let users = proc::status(thread, "Uid").unwrap_or_default();
    let mut users = users.split_whitespace();
    if owner != 0 && users.all(|user| user != owner.to_string()) {
        return Opened::Nothing;
    }
    // A compiler has written to its map since its process started.
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
    /// The bytes of the file that were read, and the bytes of all its versions.
    read: u64,
    read_of_all: u64,
    /// The last of these bytes. If the file has other bytes there, it was written again.
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
    /// Where in the file its name is.
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

    /// Returns whether more lines were written than are read.
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

    /// Takes the file that has the name now. A program may write another one.
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

    /// Returns whether the bytes that were read are still in the file.
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

/// Returns a chunk without its last line, which might be incomplete. A line that fills a whole
/// chunk is too long, so its name is not shown.
fn whole_lines(chunk: &[u8]) -> &[u8] {
    match chunk.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => &chunk[..=end],
        None if chunk.len() == CHUNK => chunk,
        None => &[],
    }
}

/// Adds the function of a line (an address, a size and a name), and removes those that begin in its
/// range.
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
