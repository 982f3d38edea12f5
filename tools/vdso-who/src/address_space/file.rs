//! Files that a hostile process chose, read by ranges: what a large file costs is what is needed.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::iter::repeat_n;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::rc::Rc;

use elsa::FrozenMap;
use object::ReadRef;

use super::bounded::has_room;
use super::names::MOST_OF_NAME;

/// Opens a regular file. `flags` can be `O_NOFOLLOW`.
pub(super) fn open(path: &Path, flags: i32) -> io::Result<File> {
    // Opening a device could have an effect, and a pipe could be put here after this check.
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | flags)
        .open(path)
}

/// A file, or bytes that were one.
///
/// Files are not mapped, because a process that truncates one would end this program by SIGBUS.
#[derive(Clone)]
pub(super) enum Image {
    File(Rc<File>),
    Bytes(Rc<[u8]>),
}

impl Image {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File(file) => match file.metadata() {
                Ok(metadata) => metadata.len(),
                Err(_) => 0,
            },
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Fills a buffer with what begins at an offset.
    pub(super) fn fill(&self, buffer: &mut [u8], offset: u64) -> Option<()> {
        match self {
            Self::File(file) => file.read_exact_at(buffer, offset).ok(),
            Self::Bytes(bytes) => {
                let rest = bytes.get(usize::try_from(offset).ok()?..)?;
                buffer.copy_from_slice(rest.get(..buffer.len())?);
                Some(())
            }
        }
    }

    /// Reads a range, if it is in the file and there is memory for it.
    pub(super) fn read(&self, offset: u64, size: u64) -> Option<Rc<[u8]>> {
        if offset.checked_add(size)? > self.len() || (size > SMALL && !has_room(size)) {
            return None;
        }
        let mut bytes: Rc<[u8]> = repeat_n(0, size as usize).collect();
        self.fill(Rc::make_mut(&mut bytes), offset)?;
        Some(bytes)
    }

    /// Reads a name, which ends with a 0; of a long one the start.
    pub(super) fn name(&self, offset: u64) -> Option<Vec<u8>> {
        let rest = self.len().checked_sub(offset)?;
        let mut name = vec![0; rest.min(MOST_OF_NAME as u64) as usize];
        self.fill(&mut name, offset)?;
        if let Some(end) = name.iter().position(|byte| *byte == 0) {
            name.truncate(end);
        }
        Some(name)
    }

    /// Returns what `object` reads from.
    pub(super) fn ranges(&self) -> Ranges<'_> {
        Ranges {
            image: self,
            known: FrozenMap::new(),
            read: Cell::new(0),
        }
    }
}

/// The bytes that are read without a look at the memory.
const SMALL: u64 = 1 << 20;

/// The ranges of an image that were read. Unlike those of `object::ReadCache`, they have a limit: a
/// malformed file can name any number of them.
pub(super) struct Ranges<'a> {
    image: &'a Image,
    known: FrozenMap<(u64, u64), Rc<[u8]>>,
    read: Cell<u64>,
}

/// What `object` makes of them.
pub(super) type Elf<'a> = object::File<'a, &'a Ranges<'a>>;

/// Names are read from such blocks and the next one.
const BLOCK: u64 = 1 << 16;

impl<'a> ReadRef<'a> for &'a Ranges<'a> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.image.len())
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if let Some(known) = self.known.get(&(offset, size)) {
            return Ok(known);
        }
        let before = self.read.get();
        self.read.set(before.saturating_add(size));
        let is_due = before / SMALL != self.read.get() / SMALL;
        if is_due && !has_room(0) {
            return Err(());
        }
        let bytes = self.image.read(offset, size).ok_or(())?;
        Ok(self.known.insert((offset, size), bytes))
    }

    fn read_bytes_at_until(
        self,
        range: std::ops::Range<u64>,
        delimiter: u8,
    ) -> Result<&'a [u8], ()> {
        let start = range.start / BLOCK * BLOCK;
        let size = self.len()?.checked_sub(start).ok_or(())?.min(2 * BLOCK);
        let block = self.read_bytes_at(start, size)?;
        let end = (range.end.saturating_sub(start)).min(size) as usize;
        let name = block.get((range.start - start) as usize..end).ok_or(())?;
        let length = name.iter().position(|byte| *byte == delimiter).ok_or(())?;
        Ok(&name[..length])
    }
}
