//! Names of files, of functions, and of code without a file.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

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

/// What a just-in-time compiler wrote to /tmp/perf-PID.map: sizes and names, by their addresses.
pub(super) struct PerfMap(BTreeMap<u64, (u64, String)>);

impl PerfMap {
    pub(super) fn parse(text: &str) -> Self {
        let entry = |line: &str| {
            let mut fields = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(fields.next()?.trim_start_matches("0x"), 16).ok();
            Some((number()?, (number()?, fields.next()?.to_owned())))
        };
        Self(text.lines().filter_map(entry).collect())
    }

    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let (start, (size, name)) = self.0.range(..=address).next_back()?;
        (address - start < *size).then_some(name)
    }
}
