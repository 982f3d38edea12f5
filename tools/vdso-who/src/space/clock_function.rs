//! The functions between a program and the vDSO.

use super::Frame;
use crate::mapping::VDSO;

/// What a function is for the question who reads the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// The program's own.
    Program,
    /// Only on the way to the clock.
    Clock,
    /// A part of an interpreter.
    Interpreter,
}

/// Files of libc and of the dynamic loader.
const LIBC: &str = "libc.so libc-2. libc.musl ld-linux ld-musl ld-2. libpthread librt";

/// Returns the role of a frame by its function and its file.
pub(super) fn role(frame: &Frame) -> Role {
    let Frame {
        function, module, ..
    } = frame;
    // The symbols of the JVM's clock functions are not exported, and Debian strips the others.
    let is_jvm = module == "libjvm.so" && function.starts_with("libjvm.so+");
    // Also `std::__1`, `std::__ndk1` and `std::__Cr` of libc++.
    let is_chrono = function.starts_with("std::")
        && function.contains("chrono::")
        && function.trim_end_matches("()").ends_with("_clock::now");
    if module == VDSO || module == "[vsyscall]" || is_libc(module) || is_jvm || is_chrono {
        return Role::Clock;
    }
    // `<std::time::Instant>::now`, `runtime.nanotime1.abi0`
    let name = function.trim_start_matches(['_', '<']);
    let name = name
        .split(".abi")
        .next()
        .unwrap_or_default()
        .trim_end_matches("()");
    let matches = |word: &str| match word.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == word,
    };
    let lines = include_str!("wrappers.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let line = lines
        .map(|line| line.split(' '))
        .find(|words| words.clone().skip(2).any(matches));
    match line.and_then(|mut words| words.next()) {
        Some("clock") => Role::Clock,
        Some(_) => Role::Interpreter,
        None => Role::Program,
    }
}

/// Returns whether a file is libc or the dynamic loader.
pub(super) fn is_libc(module: &str) -> bool {
    LIBC.split(' ').any(|word| module.starts_with(word))
}

#[cfg(test)]
#[path = "../../tests/unit/clock_function.rs"]
mod tests;
