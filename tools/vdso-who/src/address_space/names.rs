//! Names of files, of functions, and of code without a file.

use std::fmt::{self, Write};

/// Returns the last component of a path, `[vdso]`, or `[anon]`.
pub(super) fn of_module(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    // For anonymous memory, the kernel's records say `//anon`, and /proc/PID/maps says nothing or
    // `[anon:name]`.
    let is_anonymous = name.is_empty() || path == "//anon" || path.starts_with("[anon");
    if is_anonymous {
        return "[anon]".into();
    }
    name.into()
}

/// The maximum number of bytes of a name that are kept.
pub(super) const MOST_OF_NAME: usize = 1 << 14;

/// Returns a name, or only the start of a long one.
pub(super) fn start_of(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(MOST_OF_NAME)]).into_owned()
}

/// Demangles the name of a function.
pub(super) fn demangled(name: &[u8]) -> String {
    let name = start_of(name);
    if let Some(rust) = addr2line::demangle(&name, gimli::DW_LANG_Rust) {
        return start_of(rust.as_bytes());
    }
    match demangled_cpp(&name) {
        Some(cpp) => start_of(cpp.as_bytes()),
        None => name,
    }
}

/// Demangles the name of a C++ function. Each part of a mangled name can repeat the part before it
/// twice, so each part can double the length of the text. The text of a short name could then be
/// too long for any memory, so its length is limited.
fn demangled_cpp(name: &str) -> Option<String> {
    // Without this check, `a` would be the type `signed char`.
    if !name.starts_with('_') {
        return None;
    }
    let symbol = cpp_demangle::Symbol::new(name.as_bytes()).ok()?;
    let options = cpp_demangle::DemangleOptions::new();
    let mut text = Limited(String::new());
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
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
