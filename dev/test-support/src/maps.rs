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

/// Returns the mappings of a process: its number, or `self`.
pub fn all(process: &str) -> io::Result<Vec<Mapping>> {
    let text = fs::read_to_string(format!("/proc/{process}/maps"))?;
    Ok(text.lines().map(mapping).collect())
}

fn mapping(line: &str) -> Mapping {
    let (range, rest) = line.split_once(' ').expect("a range");
    let (start, end) = range.split_once('-').expect("two addresses");
    Mapping {
        range: address(start)..address(end),
        name: rest.split_whitespace().nth(4).unwrap_or_default().into(),
    }
}

fn address(text: &str) -> usize {
    usize::from_str_radix(text, 16).expect("an address")
}

/// Returns the addresses of the mapping of this name; an empty range if there is none.
pub fn named(process: &str, name: &str) -> io::Result<Range<usize>> {
    for mapping in all(process)? {
        if mapping.name == name {
            return Ok(mapping.range);
        }
    }
    Ok(0..0)
}
