//! The role of each function in a call chain: whether it belongs to the program itself, or is only
//! on the way from the program to the vDSO.

use super::Frame;
use crate::mapping::VDSO;

/// The role of a function on the way to the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// A function of the program itself.
    Program,
    /// A function that is only on the way to the clock.
    Clock,
    /// A function of an interpreter.
    Interpreter,
    /// A function that runs `main` or a thread.
    Start,
}

/// Prefixes of the file names of libc and of the dynamic loader.
const LIBC: &str = "libc.so libc-2. libc.musl ld-linux ld-musl ld-2. libpthread librt";

/// The functions of known runtimes and servers, with their roles.
const WRAPPERS: &str = include_str!("wrappers.txt");

/// Returns the role of a frame, given the names of its function and its file.
pub(super) fn role(frame: &Frame) -> Role {
    let function = &*frame.function;
    let module = &*frame.module;
    // The JVM does not export the symbols of its clock functions, and Debian strips all symbols
    // that are not exported. So a function of the JVM without a name counts as one of its clock
    // functions.
    let is_jvm = module == "libjvm.so" && function.starts_with("libjvm.so+");
    let is_vdso = module == VDSO || module == "[vsyscall]";
    // The names in wrappers.txt have neither a leading `_` or `<` nor the `.abi` suffix of Go, so
    // these parts are removed from the function's name, for example the opening bracket of
    // `<std::time::Instant>::now` and the suffix of `runtime.nanotime1.abi0`.
    let mut name = function.trim_start_matches(['_', '<']);
    if let Some((beginning, _)) = name.split_once(".abi") {
        name = beginning;
    }
    let listed = listed_role(name.trim_end_matches("()"));
    if listed == Role::Start {
        return listed;
    }
    if is_vdso || is_jvm || is_libc(module) || is_chrono(function) {
        return Role::Clock;
    }
    listed
}

/// Returns whether a function is the `now` of a C++ clock. The clocks of libc++ are in the
/// namespaces `std::__1`, `std::__ndk1` and `std::__Cr`.
fn is_chrono(function: &str) -> bool {
    let is_now = function.trim_end_matches("()").ends_with("_clock::now");
    is_now && function.starts_with("std::") && function.contains("chrono::")
}

fn listed_role(name: &str) -> Role {
    for line in WRAPPERS.lines() {
        let mut words = line.split(' ');
        let role = match words.next() {
            Some("clock") => Role::Clock,
            Some("run") => Role::Interpreter,
            Some("start") => Role::Start,
            _ => continue,
        };
        // The second word is the name of the runtime.
        if words.skip(1).any(|word| matches(word, name)) {
            return role;
        }
    }
    Role::Program
}

/// Returns whether a word of the list matches a name. A word that ends with `*` is a prefix.
fn matches(word: &str, name: &str) -> bool {
    match word.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == word,
    }
}

/// Returns whether a file is libc or the dynamic loader.
pub(super) fn is_libc(module: &str) -> bool {
    LIBC.split(' ').any(|word| module.starts_with(word))
}

#[cfg(test)]
#[path = "../../tests/unit/clock_function.rs"]
mod tests;
