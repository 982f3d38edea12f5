//! A reader of debug information that fails if reading takes too much memory or time.
//!
//! A small file can describe any number of ranges, lines and names, and addr2line keeps them all in
//! memory. But addr2line allocates memory only for what it has read. It is therefore enough that
//! this reader counts the bytes that are read and, at intervals, checks the memory of this process.

use std::borrow::Cow;
use std::cell::Cell;
use std::process;
use std::rc::Rc;

use delegate::delegate;
use gimli::{EndianReader, Error, NativeEndian, Reader, ReaderOffsetId, Result};

use crate::proc;

pub(super) type Bytes = EndianReader<NativeEndian, Rc<[u8]>>;

/// How many bytes are read between two checks of this process's memory.
const INTERVAL: u64 = 1 << 18;

/// The limit on the memory of this process. Above it, nothing more is read.
const MOST_PRIVATE: u64 = 2 << 30;

/// Returns the private memory of this process in bytes, whether it is in use or not.
pub(super) fn memory() -> u64 {
    status("VmData").unwrap_or(u64::MAX)
}

/// Returns the private memory of this process that is in use, in bytes.
pub(crate) fn resident_memory() -> u64 {
    status("RssAnon").unwrap_or(0)
}

fn status(name: &str) -> Option<u64> {
    let value = proc::status(process::id(), name)?;
    let kilobytes: u64 = value.trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes << 10)
}

/// Returns freed memory to the kernel. Otherwise glibc would keep it.
pub(crate) fn return_memory() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code, reason = "no crate has this call")]
    // SAFETY: `malloc_trim` accepts any number, and changes only memory that has been freed.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Returns whether there is memory for this many more bytes.
pub(crate) fn has_room(bytes: u64) -> bool {
    memory().saturating_add(bytes) <= MOST_PRIVATE
}

/// The limits for one file's debug information: the memory of this process, and how many bytes may
/// still be read.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) memory: u64,
    pub(super) left: Cell<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: MOST_PRIVATE,
            left: Cell::new(1 << 26),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bounded {
    bytes: Bytes,
    limits: Rc<Limits>,
}

impl Bounded {
    /// Creates a reader of a section. Adds 16 times the size of the section to the number of bytes
    /// that may still be read, because each byte may be read a few times.
    pub(super) fn new(bytes: Bytes, limits: Rc<Limits>) -> Self {
        let left = limits.left.get() + 16 * bytes.len() as u64;
        limits.left.set(left.min(1 << 32));
        Self { bytes, limits }
    }

    fn count(&self, bytes: usize) -> Result<()> {
        let limits = &self.limits;
        let before = limits.left.get();
        let mut after = before.saturating_sub(bytes as u64 + 1);
        let is_due = before / INTERVAL != after / INTERVAL;
        if is_due && memory() > limits.memory {
            after = 0;
        }
        limits.left.set(after);
        if after == 0 {
            return Err(Error::UnexpectedEof(self.offset_id()));
        }
        Ok(())
    }
}

impl Reader for Bounded {
    type Endian = NativeEndian;
    type Offset = usize;

    delegate! {
        to self.bytes {
            fn endian(&self) -> NativeEndian;
            fn len(&self) -> usize;
            fn empty(&mut self);
            fn truncate(&mut self, len: usize) -> Result<()>;
            fn offset_id(&self) -> ReaderOffsetId;
            fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize>;
            fn to_slice(&self) -> Result<Cow<'_, [u8]>>;
        }
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.bytes.offset_from(&base.bytes)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = self.bytes.find(byte);
        // If the byte is not found, all bytes were searched.
        let searched = match found {
            Ok(before) => before,
            Err(_) => self.len(),
        };
        self.count(searched)?;
        found
    }

    fn skip(&mut self, len: usize) -> Result<()> {
        self.count(0)?;
        self.bytes.skip(len)
    }

    fn split(&mut self, len: usize) -> Result<Self> {
        self.count(0)?;
        Ok(Self {
            bytes: self.bytes.split(len)?,
            limits: self.limits.clone(),
        })
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.count(self.len())?;
        self.bytes.to_string()
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.count(self.len())?;
        self.bytes.to_string_lossy()
    }

    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.count(buffer.len())?;
        self.bytes.read_slice(buffer)
    }
}
