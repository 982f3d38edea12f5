//! Names of files and of code without one.

use std::fs;
use std::path::Path;

use super::module;

/// The last component of a path, `[vdso]`, or `[anon]`.
pub(super) fn of_module(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() { "[anon]".into() } else { name.into() }
}

/// What a just-in-time compiler wrote to /tmp/perf-PID.map, sorted.
pub(super) struct PerfMap(Vec<(u64, u64, String)>);

/// A larger file is not read.
const MOST_BYTES: u64 = 64 << 20;

impl PerfMap {
    /// Reads the file of the process, in its file system and by its own number. It may not exist.
    pub(super) fn read(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let own = status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last());
        let path = format!("/proc/{pid}/root/tmp/perf-{}.map", own.unwrap_or("self"));
        let bytes = module::read(Path::new(&path), MOST_BYTES).unwrap_or_default();
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    pub(super) fn parse(text: &str) -> Self {
        let mut entries: Vec<_> = text.lines().filter_map(entry).collect();
        entries.sort_by_key(|entry| entry.0);
        Self(entries)
    }

    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let next = self.0.partition_point(|entry| entry.0 <= address);
        let (start, size, name) = self.0[..next].last()?;
        (address - start < *size).then_some(name)
    }
}

fn entry(line: &str) -> Option<(u64, u64, String)> {
    let mut fields = line.splitn(3, ' ');
    let mut number = || {
        let field = fields.next()?;
        u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
    };
    Some((number()?, number()?, fields.next()?.to_owned()))
}
