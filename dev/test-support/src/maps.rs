//! The mappings of a process: proc_pid_maps(5).

use std::fs;
use std::io;
use std::ops::Range;

use nix::unistd::{SysconfVar, sysconf};

pub fn page_size() -> usize {
    sysconf(SysconfVar::PAGE_SIZE).unwrap().unwrap() as usize
}

pub struct Mapping {
    pub range: Range<usize>,
    /// Empty if there is none.
    pub name: String,
}

/// Returns the mappings of a process, by its number or `self`.
pub fn all(process: &str) -> io::Result<Vec<Mapping>> {
    let text = fs::read_to_string(format!("/proc/{process}/maps"))?;
    let address = |text: &str| usize::from_str_radix(text, 16).expect("an address");
    let mapping = |line: &str| {
        let (range, rest) = line.split_once(' ').expect("a range");
        let (start, end) = range.split_once('-').expect("two addresses");
        let name = rest.split_whitespace().nth(4).unwrap_or_default();
        Mapping {
            range: address(start)..address(end),
            name: name.into(),
        }
    };
    Ok(text.lines().map(mapping).collect())
}

/// Returns the addresses of the mapping of this name; an empty range if there is none.
pub fn named(process: &str, name: &str) -> io::Result<Range<usize>> {
    Ok(all(process)?
        .into_iter()
        .find(|mapping| mapping.name == name)
        .map_or(0..0, |mapping| mapping.range))
}
