//! Files that a hostile process may have chosen. They are read in ranges, so that a large file
//! takes memory only for the parts that are needed.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::iter::repeat_n;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use elsa::FrozenMap;
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::FileHeader;
use object::{Endianness, FileKind, ReadRef};

use super::bounded::has_room;
use super::names::MOST_OF_NAME;

/// Opens a regular file. `flags` can be `O_NOFOLLOW`.
pub(super) fn open(path: &Path, flags: i32) -> io::Result<File> {
    // Opening a device could have side effects, so this function opens only regular files. With
    // `O_PATH` the kernel finds the file and does not open it. What is opened afterwards is that
    // file, even if another one has taken its place meanwhile.
    let found = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | flags)
        .open(path)?;
    if !found.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// A file as it was when it was opened, or the bytes of a file in memory. Once the file has been
/// written to, nothing more is read from it, because it may no longer contain the code that runs:
/// cp(1), scp(1) and `rsync --inplace` overwrite a program in place. Without this rule, the
/// functions of the running program would get the names of functions in the new file.
///
/// Files are not mapped: if another process truncated a mapped file, this program would end with
/// SIGBUS.
#[derive(Clone)]
pub(super) enum Image {
    File(Rc<(File, Version)>),
    Bytes(Rc<[u8]>),
}

/// The metadata that changes when a file is written to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    links: u64,
}

impl Version {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            links: metadata.nlink(),
        })
    }

    /// Returns whether the content may have changed after `time`.
    ///
    /// The answer comes from the file's `ctime` and not from its `mtime`, because any program can
    /// set the `mtime` of its files. A removed file is an exception: its removal changed the
    /// `ctime` but not the content, so the answer comes from the `mtime`.
    pub(super) fn is_changed_after(self, time: SystemTime) -> bool {
        let (seconds, nanos) = if self.links == 0 {
            self.modified
        } else {
            self.changed
        };
        let Ok(seconds) = u64::try_from(seconds) else {
            // A process can give its file a time before 1970, which is before `time`.
            return false;
        };
        let since_1970 = Duration::new(seconds, nanos as u32);
        match SystemTime::UNIX_EPOCH.checked_add(since_1970) {
            Some(changed) => changed > time,
            None => true,
        }
    }

    /// Returns whether the content of the file is the same in both versions.
    ///
    /// A package manager can remove the file of a running program. The removal changes `links` and
    /// `changed`, but not the content. So `changed` is not compared if `links` differs.
    pub(super) fn is_same(self, other: Self) -> bool {
        let has_other_links = self.links != other.links;
        self.size == other.size
            && self.modified == other.modified
            && (self.changed == other.changed || has_other_links)
    }
}

impl Image {
    /// Creates the image of an open file.
    pub(super) fn of(file: File) -> io::Result<Self> {
        let version = Version::of(&file)?;
        Ok(Self::File(Rc::new((file, version))))
    }

    /// Returns whether nothing has been written to the file since it was opened.
    pub(super) fn is_original(&self) -> bool {
        match self {
            Self::File(file) => match Version::of(&file.0) {
                Ok(now) => now.is_same(file.1),
                Err(_) => false,
            },
            Self::Bytes(_) => true,
        }
    }

    /// Returns the version of a file.
    pub(super) fn version(&self) -> Option<Version> {
        match self {
            Self::File(file) => Some(file.1),
            Self::Bytes(_) => None,
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File(file) => file.1.size,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Fills a buffer with the bytes at an offset.
    pub(super) fn fill(&self, buffer: &mut [u8], offset: u64) -> Option<()> {
        match self {
            Self::File(file) => {
                file.0.read_exact_at(buffer, offset).ok()?;
                if self.is_original() { Some(()) } else { None }
            }
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

    /// Reads a name that ends with a zero byte. Returns only the start of a long name.
    pub(super) fn name(&self, offset: u64) -> Option<Vec<u8>> {
        let rest = self.len().checked_sub(offset)?;
        let mut name = vec![0; rest.min(MOST_OF_NAME as u64) as usize];
        self.fill(&mut name, offset)?;
        if let Some(end) = name.iter().position(|byte| *byte == 0) {
            name.truncate(end);
        }
        Some(name)
    }

    /// Returns the source that `object` reads from.
    pub(super) fn ranges(&self) -> Ranges<'_> {
        Ranges {
            image: self,
            known: FrozenMap::new(),
            read: Cell::new(0),
        }
    }
}

/// At most this many bytes are read without a check that this process stays within its limit on
/// memory.
const SMALL: u64 = 1 << 20;

/// The ranges of an image that were read. Unlike `object::ReadCache`, this cache stops at a limit
/// on memory, because a malformed file can name any number of ranges.
pub(super) struct Ranges<'a> {
    image: &'a Image,
    known: FrozenMap<(u64, u64), Rc<[u8]>>,
    read: Cell<u64>,
}

/// An ELF file that `object` parses from these ranges.
pub(super) type Elf<'a> = object::File<'a, &'a Ranges<'a>>;

/// The maximum number of sections, and of segments, of a file. A file with more is not parsed. The
/// linker merges sections, so programs and libraries usually have fewer than a hundred. A malformed
/// file can have any number of them, and each lookup of a section looks at all of them.
const MOST_HEADERS: u32 = 1 << 10;

/// Parses an ELF file. Returns `None` if it is malformed, or has too many sections or segments.
pub(super) fn elf<'a>(ranges: &'a Ranges<'a>) -> Option<Elf<'a>> {
    let has_few_headers = match FileKind::parse(ranges).ok()? {
        FileKind::Elf32 => has_few_headers::<FileHeader32<Endianness>>(ranges)?,
        FileKind::Elf64 => has_few_headers::<FileHeader64<Endianness>>(ranges)?,
        _ => false,
    };
    if !has_few_headers {
        return None;
    }
    Elf::parse(ranges).ok()
}

fn has_few_headers<Header: FileHeader>(ranges: &Ranges<'_>) -> Option<bool> {
    let header = Header::parse(ranges).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.shnum(endian, ranges).ok()?;
    let segments = header.phnum(endian, ranges).ok()?;
    Some(sections <= MOST_HEADERS && segments <= MOST_HEADERS)
}

/// The size of the blocks in which names are read. A read of a name reads two whole blocks: the
/// block in which the name begins, and the next one. So names that begin in the same block come
/// from the same entry of the cache.
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
