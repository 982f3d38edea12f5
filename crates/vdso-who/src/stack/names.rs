//! Names of files, of functions, and of code without a file.

use std::fmt::{self, Write};
use std::path::Path;

use super::file;
use crate::proc;

/// The last component of a path, `[vdso]`, or `[anon]`.
pub(super) fn of_module(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() { "[anon]".into() } else { name.into() }
}

/// The bytes of a name that are kept.
const MOST_OF_NAME: usize = 1 << 14;

/// The start of a name.
pub(super) fn shortened(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(MOST_OF_NAME)]).into_owned()
}

/// The function's name in its language.
pub(super) fn demangled(name: &[u8]) -> String {
    let name = shortened(name);
    let rust = || addr2line::demangle(&name, gimli::DW_LANG_Rust);
    let cpp = || {
        // Without this, `a` is a type: `signed char`.
        let symbol = cpp_demangle::Symbol::new(name.strip_prefix('_').map(|_| name.as_bytes())?).ok()?;
        let mut text = Limited(String::new());
        // Each part of a name can repeat the one before twice, so the text can be endless.
        symbol.structured_demangle(&mut text, &cpp_demangle::DemangleOptions::new()).ok()?;
        Some(text.0)
    };
    rust().or_else(cpp).map_or(name.clone(), |name| shortened(name.as_bytes()))
}

/// A text that fails if it gets too long.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MOST_OF_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// What a just-in-time compiler wrote to /tmp/perf-PID.map, sorted.
pub(super) struct PerfMap(Vec<(u64, u64, String)>);

/// A larger file is not read.
const MOST_BYTES: u64 = 64 << 20;

impl PerfMap {
    /// Reads the file of the process, in its file system and by its own number. It may not exist.
    pub(super) fn read(pid: u32, thread: u32) -> Self {
        let own = proc::status(pid, "NSpid");
        let own = own.as_deref().and_then(|own| own.split_whitespace().last());
        let path = format!("/proc/{thread}/root/tmp/perf-{}.map", own.unwrap_or("self"));
        // A link may lead to a file that has an effect when it is read, such as /proc/kmsg.
        let opened = file::open(Path::new(&path), libc::O_NOFOLLOW);
        let bytes = opened.and_then(|opened| file::read(opened, MOST_BYTES));
        bytes.map_or(Self(Vec::new()), |bytes| Self::parse(&String::from_utf8_lossy(&bytes)))
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
