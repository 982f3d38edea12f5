//! Names of files, of functions, and of code without a file.

use std::fmt::{self, Write};

/// Returns the last component of a path, `[vdso]`, or `[anon]`.
pub(super) fn of_module(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    // The kernel's records say `//anon`, /proc/PID/maps says nothing or `[anon:name]`.
    let is_anonymous = name.is_empty() || path == "//anon" || path.starts_with("[anon");
    if is_anonymous {
        "[anon]".into()
    } else {
        name.into()
    }
}

/// The bytes of a name that are kept.
pub(super) const MOST_OF_NAME: usize = 1 << 14;

/// Returns the start of a name.
pub(super) fn start_of(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(MOST_OF_NAME)]).into_owned()
}

/// Returns the function's name in its language.
pub(super) fn demangled(name: &[u8]) -> String {
    let name = start_of(name);
    let rust = || addr2line::demangle(&name, gimli::DW_LANG_Rust);
    let cpp = || {
        // Without this, `a` is a type: `signed char`.
        let symbol =
            cpp_demangle::Symbol::new(name.strip_prefix('_').map(|_| name.as_bytes())?).ok()?;
        let mut text = Limited(String::new());
        // Each part of a name can repeat the part before it twice, so a short name can have an
        // endless text.
        symbol
            .structured_demangle(&mut text, &cpp_demangle::DemangleOptions::new())
            .ok()?;
        Some(text.0)
    };
    rust()
        .or_else(cpp)
        .map_or(name.clone(), |name| start_of(name.as_bytes()))
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
