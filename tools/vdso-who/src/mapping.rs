//! Executable mappings of a process, as /proc and the kernel's records report them.

use std::ops::Range;
use std::sync::Arc;

use crate::{Result, proc};

/// The path of the vDSO.
pub(crate) const VDSO: &str = "[vdso]";

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

/// Reads the mappings of a process that runs.
pub(crate) fn of_process(pid: u32) -> Result<Vec<Mapping>> {
    let maps = proc::living_thread(pid).and_then(|thread| proc::text(thread, "maps"));
    let maps = maps.map_err(|error| proc::explain(pid, &error))?;
    Ok(maps.lines().filter_map(parsed).collect())
}

/// Finds the vDSO in /proc/PID/maps. The auxiliary vector only has the address that it had first.
pub(crate) fn vdso(maps: &str) -> Option<Range<u64>> {
    maps.lines()
        .filter_map(parsed)
        .find(|mapping| &*mapping.path == VDSO)
        .map(|mapping| mapping.range)
}

/// Parses a line of /proc/PID/maps, if the mapping is executable.
pub(crate) fn parsed(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let is_executable = fields.next()?.contains('x');
    let offset = number(fields.next()?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = (number(major)? as u32, number(minor)? as u32);
    let file = FileId {
        device,
        inode: fields.next()?.parse().ok()?,
    };
    let path: Arc<str> = fields.next().unwrap_or_default().trim_start().into();
    let offset = if &*path == VDSO { 0 } else { offset };
    is_executable.then_some(Mapping {
        range: number(start)?..number(end)?,
        offset,
        path,
        file,
    })
}
