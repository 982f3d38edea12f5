//! Executable mappings of a process, as /proc and the kernel's records report them.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::Result;
use crate::proc;

/// The path of the vDSO.
pub(crate) const VDSO: &str = "[vdso]";

/// The identity of a file: its device and its inode. All numbers are 0 if there is no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
}

/// An executable mapping.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) range: Range<u64>,
    pub(crate) offset: u64,
    /// Empty if there is no file.
    pub(crate) path: Arc<str>,
    pub(crate) file: FileId,
    /// When the mapping was reported. If the file was changed after that, its content may no longer
    /// be the mapped content.
    pub(crate) seen: SystemTime,
}

impl Mapping {
    /// Returns whether another mapping maps the same part of the same file to the same addresses.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same_file = self.file == other.file && self.path == other.path;
        is_same_file && self.range == other.range && self.offset == other.offset
    }

    pub(crate) fn is_vdso(&self) -> bool {
        &*self.path == VDSO
    }

    pub(crate) fn has_file(&self) -> bool {
        self.file.inode != 0
    }

    /// Returns the offset of an address in the file.
    pub(crate) fn offset_of(&self, address: u64) -> u64 {
        address - self.range.start + self.offset
    }
}

/// Reads the executable mappings of a running process.
pub(crate) fn of_process(pid: u32) -> Result<Vec<Mapping>> {
    let maps = match proc::living_thread(pid) {
        Ok(thread) => proc::text(thread, "maps"),
        Err(error) => Err(error),
    };
    let maps = maps.map_err(|error| proc::explain(pid, &error))?;
    Ok(maps.lines().filter_map(parsed).collect())
}

/// Finds the vDSO in /proc/PID/maps. The auxiliary vector contains only its first address, which is
/// out of date if the program has moved the vDSO.
pub(crate) fn vdso(maps: &str) -> Option<Range<u64>> {
    let mut mappings = maps.lines().filter_map(parsed);
    let vdso = mappings.find(Mapping::is_vdso)?;
    Some(vdso.range)
}

/// Parses a line of /proc/PID/maps. Returns `None` if the mapping is not executable.
pub(crate) fn parsed(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let mut offset = hexadecimal(fields.next()?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?.parse().ok()?;
    let path: Arc<str> = fields.next().unwrap_or_default().trim_start().into();
    if !rights.contains('x') {
        return None;
    }
    if &*path == VDSO {
        offset = 0;
    }
    Some(Mapping {
        range: hexadecimal(start)?..hexadecimal(end)?,
        offset,
        path,
        file: FileId {
            device: (hexadecimal(major)? as u32, hexadecimal(minor)? as u32),
            inode,
        },
        seen: SystemTime::now(),
    })
}

fn hexadecimal(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}
