//! Executable mappings of a process, as /proc and the kernel's records report them.

use std::ops::Range;
use std::sync::Arc;

/// A file, by its device and inode. 0 if there is no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
}

/// An executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) range: Range<u64>,
    pub(crate) offset: u64,
    /// Empty if there is no file.
    pub(crate) path: Arc<str>,
    pub(crate) file: FileId,
}
