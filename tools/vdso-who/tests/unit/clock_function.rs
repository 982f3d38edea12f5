//! Which function of a call chain is the caller.

use std::sync::Arc;

use super::super::{Caller, Files, Space};
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
        ("std::sys::unix::time::inner::<impl std::sys::unix::time::Timespec>::now", "rust", Clock),
        ("std::chrono::_V2::steady_clock::now()", "libstdc++.so.6", Clock),
        ("std::__1::chrono::steady_clock::now()", "libc++.so.1", Clock),
        ("std::__ndk1::chrono::system_clock::now()", "libc++_shared.so", Clock),
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
        assert_eq!(role(&Frame::unknown(function.into(), module)), expected, "{function}");
    }
}

/// Functions of an interpreter stand for the script's function that they run, if it has a name.
#[test]
fn the_caller_is_the_programs_function_and_a_scripts_before_its_interpreters() {
    let mut space = Space::new(0, Files::default());
    let named = |function: &str| Frame::unknown(function.into(), "static");
    let script = |function: &str| Frame { is_volatile: true, has_name: true, ..named(function) };
    let jit = || Frame { is_volatile: true, ..named("(JIT)") };
    let (eval, call) = (named("_PyEval_EvalFrameDefault"), named("PyObject_Vectorcall"));
    let inlined = vec![named("clock_gettime"), named("inner"), named("outer")];
    for (chain, expected) in [
        (
            vec![
                vec![named("clock_gettime")],
                vec![named("ustime")],
                vec![named("call")],
                vec![named("main")],
            ],
            ["call", "main"],
        ),
        (vec![inlined, vec![named("main")]], ["inner", "outer"]),
        (
            vec![vec![call.clone()], vec![eval.clone()], vec![script("py::f")], vec![eval.clone()]],
            ["py::f", "_PyEval_EvalFrameDefault"],
        ),
        (
            vec![vec![call.clone()], vec![eval.clone()], vec![named("main")]],
            ["PyObject_Vectorcall", "_PyEval_EvalFrameDefault"],
        ),
        (vec![vec![eval], vec![jit()], vec![named("main")]], ["_PyEval_EvalFrameDefault", "(JIT)"]),
        (vec![vec![named("f")], vec![script("py::f")]], ["f", "py::f"]),
        (vec![vec![named("clock_gettime")]], ["clock_gettime", ""]),
        (vec![], ["[unknown]", ""]),
    ] {
        let addresses: Vec<_> = (0..chain.len() as u64).collect();
        space.frames.clear();
        for (address, frames) in chain.into_iter().enumerate() {
            let functions = frames.into_iter().map(|frame| (role(&frame), Arc::new(frame))).collect();
            space.frames.insert(address as u64, functions);
        }
        let Caller { first, next } = space.caller(&addresses);
        assert_eq!([&*first.function, next.as_ref().map_or("", |next| &next.function)], expected);
    }
}
