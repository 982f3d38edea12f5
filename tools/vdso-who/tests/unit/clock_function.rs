//! Tests of which function of a call chain is shown as the caller.

use std::sync::Arc;

use super::super::{AddressSpace, Caller, Files};
use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn clock_functions_are_not_the_programs() {
    use Role::{Clock, Interpreter, Program, Start};
    for (function, module, expected) in [
        ("anything", "libc.so.6", Clock),
        ("__clock_gettime", "static", Clock),
        ("time", "static", Clock),
        ("timer", "static", Program),
        ("runtime.nanotime1.abi0", "go", Clock),
        ("runtime.schedule", "go", Program),
        ("time.Now", "go", Clock),
        ("<std::time::Instant>::now", "rust", Clock),
        ("std::time::Instant::now", "rust", Clock),
        (
            "std::sys::unix::time::inner::<impl std::sys::unix::time::Timespec>::now",
            "rust",
            Clock,
        ),
        (
            "std::chrono::_V2::steady_clock::now()",
            "libstdc++.so.6",
            Clock,
        ),
        (
            "std::__1::chrono::steady_clock::now()",
            "libc++.so.1",
            Clock,
        ),
        (
            "std::__ndk1::chrono::system_clock::now()",
            "libc++_shared.so",
            Clock,
        ),
        ("std::__Cr::chrono::steady_clock::now()", "chromium", Clock),
        ("std::chrono::steady_clock::now", "static", Clock),
        ("company::chrono::steady_clock::now()", "static", Program),
        ("os::javaTimeNanos()", "libjvm.so", Clock),
        ("libjvm.so+0x1", "libjvm.so", Clock),
        ("uv__hrtime", "node", Clock),
        ("rustix::time::clock::clock_gettime", "rust", Clock),
        (
            "<tracing_subscriber::fmt::time::SystemTime as tracing_subscriber::fmt::time::FormatTime>::format_time",
            "rust",
            Clock,
        ),
        ("clock_update_local_date", "haproxy", Clock),
        ("jiff::timestamp::Timestamp::now", "rust", Clock),
        ("coarsetime::instant::Instant::_now", "rust", Clock),
        ("start_thread", "libc.so.6", Start),
        ("runtime.goexit.abi0", "go", Start),
        ("ustime", "redis-server", Clock),
        ("ngx_time_update", "nginx", Clock),
        ("v8::base::TimeTicks::Now()", "node", Clock),
        ("_PyEval_EvalFrameDefault", "python3.12", Interpreter),
        ("Builtins_InterpreterEntryTrampoline", "node", Interpreter),
        ("main", "static", Program),
    ] {
        assert_eq!(
            role(&Frame::unknown(function.into(), module)),
            expected,
            "{function}"
        );
    }
}

/// Returns the functions at one address of a test's chain. Inlined functions have a `+` between
/// them. A name with an offset, such as `g+0x1`, is one function.
fn split(functions: &str) -> Vec<&str> {
    if functions.contains("+0x") {
        return vec![functions];
    }
    functions.split('+').collect()
}

/// A function of an interpreter is skipped only if the script's function that it runs has a name.
#[test]
fn the_caller_is_the_programs_function_and_a_scripts_before_its_interpreters() {
    for (chain, expected) in [
        ("clock_gettime ustime call main", ["call", "main", ""]),
        ("clock_gettime+inner+outer main", ["inner", "outer", ""]),
        (
            "PyObject_Call _PyEval_Frame py::f _PyEval_Frame",
            ["py::f", "_PyEval_Frame", ""],
        ),
        (
            "PyObject_Call _PyEval_Frame main",
            ["PyObject_Call", "_PyEval_Frame", ""],
        ),
        (
            "_PyEval_Frame (JIT) main",
            ["_PyEval_Frame", "(JIT)", "main"],
        ),
        ("f py::f", ["f", "py::f", ""]),
        ("clock_gettime", ["clock_gettime", "", ""]),
        ("", ["[unknown]", "", ""]),
        // A chain ends at `main` and at the start of a thread, with or without libc's names.
        ("now main __libc_start_call_main", ["now", "main", ""]),
        ("main libc.so.6+0x27249", ["main", "", ""]),
        ("main start_of_another_libc", ["main", "", ""]),
        ("main.main start_of_another_go", ["main.main", "", ""]),
        ("work start_thread clone3", ["work", "", ""]),
        ("work libc.so.6+0x89134 libc.so.6+0x109", ["work", "", ""]),
        ("f g+0x1 h+0x2 i main", ["f", "g+0x1", "i"]),
        ("f g+0x1 h+0x2", ["f", "g+0x1", ""]),
    ] {
        let Caller {
            first, next, named, ..
        } = caller(chain, 2);
        assert_eq!(
            [
                &*first.function,
                next.as_ref().map_or("", |next| &next.function),
                named.as_ref().map_or("", |named| &named.function),
            ],
            expected
        );
    }
}

/// Cuts the same chain at different depths. If no caller that is shown has a name, the next caller
/// that has one is shown as well, here after the comma.
#[test]
fn a_row_has_as_many_functions_as_the_depth_says() {
    for (depth, expected) in [
        (1, "f"),
        (2, "f g+0x1, i"),
        (3, "f g+0x1 h+0x2, i"),
        (4, "f g+0x1 h+0x2 i"),
        (5, "f g+0x1 h+0x2 i main"),
        (128, "f g+0x1 h+0x2 i main"),
    ] {
        let caller = caller("f g+0x1 h+0x2 i main", depth);
        let mut functions = vec![caller.first.function.as_str()];
        for frame in caller.next.iter().chain(&caller.outer) {
            functions.push(&frame.function);
        }
        let mut functions = functions.join(" ");
        if let Some(named) = caller.named {
            functions = format!("{functions}, {}", named.function);
        }
        assert_eq!(functions, expected, "{depth}");
    }
}

/// Returns the caller that is shown for a call chain. Each word of `chain` names the functions at
/// one address.
fn caller(chain: &str, depth: usize) -> Caller {
    let mut space = AddressSpace::new(0, Files::default());
    let frame = |name: &str| {
        let is_script = name.starts_with("py::");
        let is_volatile = is_script || name == "(JIT)";
        let module = if name.starts_with("libc.so.6+") {
            "libc.so.6"
        } else {
            "static"
        };
        Frame {
            is_volatile,
            has_name: !name.contains("+0x") && name != "(JIT)",
            ..Frame::unknown(name.into(), module)
        }
    };
    let mut addresses = Vec::new();
    for (address, functions) in (0..).zip(chain.split_whitespace()) {
        let frames = split(functions).into_iter().map(frame);
        let functions = frames
            .map(|frame| (role(&frame), Arc::new(frame)))
            .collect();
        space.frames.insert(address, functions);
        addresses.push(address);
    }
    space.caller(&addresses, depth)
}
