//! Which function of a call chain is the caller.

use std::sync::Arc;

use super::super::{AddressSpace, Caller, Files};
use super::*;

#[test]
fn clock_functions_are_not_the_programs() {
    use Role::{Clock, Interpreter, Program};
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

/// Functions of an interpreter stand for the script's function that they run, if it has a name.
#[test]
fn the_caller_is_the_programs_function_and_a_scripts_before_its_interpreters() {
    let mut space = AddressSpace::new(0, Files::default());
    let frame = |name: &str| {
        let is_script = name.starts_with("py::");
        let is_volatile = is_script || name == "(JIT)";
        Frame {
            is_volatile,
            has_name: is_script,
            ..Frame::unknown(name.into(), "static")
        }
    };
    for (chain, expected) in [
        ("clock_gettime ustime call main", ["call", "main"]),
        ("clock_gettime+inner+outer main", ["inner", "outer"]),
        (
            "PyObject_Call _PyEval_Frame py::f _PyEval_Frame",
            ["py::f", "_PyEval_Frame"],
        ),
        (
            "PyObject_Call _PyEval_Frame main",
            ["PyObject_Call", "_PyEval_Frame"],
        ),
        ("_PyEval_Frame (JIT) main", ["_PyEval_Frame", "(JIT)"]),
        ("f py::f", ["f", "py::f"]),
        ("clock_gettime", ["clock_gettime", ""]),
        ("", ["[unknown]", ""]),
    ] {
        space.frames.clear();
        // Functions with a `+` between them are inlined.
        for (address, functions) in (0..).zip(chain.split_whitespace()) {
            let frames = functions.split('+').map(frame);
            let functions = frames
                .map(|frame| (role(&frame), Arc::new(frame)))
                .collect();
            space.frames.insert(address, functions);
        }
        let addresses: Vec<_> = (0..space.frames.len() as u64).collect();
        let Caller { first, next } = space.caller(&addresses);
        assert_eq!(
            [
                &*first.function,
                next.as_ref().map_or("", |next| &next.function)
            ],
            expected
        );
    }
}
