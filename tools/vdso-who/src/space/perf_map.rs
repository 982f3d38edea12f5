//! Names of just-in-time compiled code, which its compiler appends to /tmp/perf-PID.map.
//!
//! A compiler that writes code into memory that it has makes no record of the kernel, so only the
//! file shows that there is new code. It can have a hundred megabytes, and a compiler may change a
//! mapping each millisecond. So the file is looked at ten times a second, and for an address
//! without a name; only its new lines are read, and their names stay in the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::time::{Duration, Instant};

use super::bounded::has_room;
use super::names::{MOST_OF_NAME, start_of};

/// How long a name is taken for the last one of its address.
const PAUSE: Duration = Duration::from_millis(100);

/// The bytes that are read at once, those that are compared, and those of all files of a process.
const CHUNK: usize = 1 << 20;
const END: usize = 64;
const MOST_BYTES: u64 = 1 << 30;

/// The map of a process.
#[derive(Default)]
pub(super) struct PerfMap {
    file: Option<(File, (u64, u64))>,
    /// The bytes of the file that were read, and those of all its versions.
    read: u64,
    read_of_all: u64,
    /// The last of these bytes. Others in their place show that the file was written again.
    end: Vec<u8>,
    /// By its address, the size of a function, and the place and the length of its name.
    functions: BTreeMap<u64, (u64, u64, usize)>,
    looked: Option<Instant>,
}

impl PerfMap {
    /// Returns the name of the function at an address, as the last line says that has it.
    pub(super) fn name(
        &mut self,
        address: u64,
        open: impl FnOnce() -> io::Result<File>,
    ) -> Option<String> {
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= PAUSE);
        if is_due {
            self.looked = Some(Instant::now());
            self.take(open().ok());
        }
        if is_due || self.function(address).is_none() || !self.has_end() {
            self.read_lines();
        }
        let (at, length) = self.function(address)?;
        let mut name = vec![0; length.min(MOST_OF_NAME)];
        self.file.as_ref()?.0.read_exact_at(&mut name, at).ok()?;
        Some(start_of(&name))
    }

    /// Returns whether more lines were written than are read.
    pub(super) fn is_full(&self) -> bool {
        self.read_of_all >= MOST_BYTES
    }

    fn function(&self, address: u64) -> Option<(u64, usize)> {
        let (start, (size, at, length)) = self.functions.range(..=address).next_back()?;
        (address - start < *size).then_some((*at, *length))
    }

    /// Takes the file that has the name now. A program may write another one.
    fn take(&mut self, file: Option<File>) {
        let Some(file) = file else { return };
        let Ok(metadata) = file.metadata() else {
            return;
        };
        let id = (metadata.dev(), metadata.ino());
        if self.file.as_ref().is_none_or(|(_, known)| *known != id) {
            self.file = Some((file, id));
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.read = 0;
        self.end.clear();
        self.functions.clear();
    }

    /// Returns whether what was read is still in the file.
    fn has_end(&self) -> bool {
        let (mut end, start) = (vec![0; self.end.len()], self.read - self.end.len() as u64);
        let known = self.file.as_ref();
        known.is_none_or(|(file, _)| file.read_exact_at(&mut end, start).is_ok() && end == self.end)
    }

    fn read_lines(&mut self) {
        if !self.has_end() {
            self.forget();
        }
        let Some((file, _)) = &self.file else { return };
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let mut chunk = Vec::new();
        while self.read < size && !self.is_full() && has_room(CHUNK as u64) {
            chunk.resize(CHUNK.min((size - self.read) as usize), 0);
            if file.read_exact_at(&mut chunk, self.read).is_err() {
                return;
            }
            // The last line may not be complete. One that fills a chunk has no name that is shown.
            let end = chunk
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map(|end| end + 1);
            let Some(end) = end.or_else(|| Some(CHUNK).filter(|size| *size == chunk.len())) else {
                return;
            };
            let mut at = self.read;
            for line in chunk[..end].split_inclusive(|byte| *byte == b'\n') {
                add(&mut self.functions, line, at);
                at += line.len() as u64;
            }
            self.read = at;
            self.read_of_all += end as u64;
            self.end = chunk[end.saturating_sub(END)..end].into();
        }
    }
}

/// Adds the function of a line (an address, a size and a name), and removes those that begin in its
/// range.
fn add(functions: &mut BTreeMap<u64, (u64, u64, usize)>, line: &[u8], at: u64) -> Option<()> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let digits = std::str::from_utf8(fields.next()?).ok()?;
        u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = fields.next()?;
    let place = at + (line.len() - name.len()) as u64;
    while let Some((old, _)) = functions.range(start..start.saturating_add(size)).next() {
        let old = *old;
        functions.remove(&old);
    }
    functions.insert(start, (size, place, name.trim_ascii_end().len()));
    Some(())
}

#[cfg(test)]
#[path = "../../tests/unit/perf_map.rs"]
mod tests;
