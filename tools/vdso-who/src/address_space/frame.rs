//! The names of addresses, and which of a call chain are shown.

use std::sync::Arc;

use serde::Serialize;

use super::clock_function::{Role, is_libc};

/// The name of an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Frame {
    /// Demangled. Without a symbol: the module and the offset in its file.
    pub(crate) function: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// The file's name, `[vdso]`, or `[anon]`.
    pub(crate) module: String,
    #[serde(skip)]
    pub(crate) has_name: bool,
    /// Whether it is code without a file, or none.
    #[serde(skip)]
    pub(super) is_volatile: bool,
}

impl Frame {
    pub(super) fn named(function: String, module: &str) -> Self {
        Self {
            function,
            file: None,
            line: None,
            module: module.to_owned(),
            has_name: true,
            is_volatile: false,
        }
    }

    pub(crate) fn unknown(function: String, module: &str) -> Self {
        Self {
            has_name: false,
            ..Self::named(function, module)
        }
    }
}

/// The caller of the clock, and its caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) first: Arc<Frame>,
    pub(crate) next: Option<Arc<Frame>>,
    /// The callers beyond the next one, with --depth.
    pub(crate) outer: Vec<Arc<Frame>>,
    /// The first one beyond that has a name, if none of the callers has one.
    pub(crate) named: Option<Arc<Frame>>,
}

impl Caller {
    pub(crate) fn unknown() -> Self {
        Self {
            first: Arc::new(Frame::unknown("[unknown]".into(), "")),
            next: None,
            outer: Vec::new(),
            named: None,
        }
    }
}

/// Returns whether a chain needs no further frames: it has reached `main`, or has so many functions
/// of the program, and one with a name beyond the first one.
pub(super) fn are_enough(frames: &[(Role, Arc<Frame>)], depth: usize) -> bool {
    if let Some((_, last)) = frames.last() {
        if last.function == "main" || last.function == "main.main" {
            return true;
        }
    }
    let mut beyond = frames.iter();
    let has_program = beyond.any(|(role, _)| *role == Role::Program);
    let beyond = beyond.as_slice();
    has_program && beyond.len() + 1 >= depth && beyond.iter().any(|(_, frame)| frame.has_name)
}

/// Returns the caller in a chain of frames without the functions of the clock, of which `clock` is
/// the innermost.
pub(super) fn caller(
    frames: &[(Role, Arc<Frame>)],
    clock: Option<&Arc<Frame>>,
    depth: usize,
) -> Caller {
    let program = frames.iter().position(|(role, _)| *role == Role::Program);
    // What runs a thread has no name in a stripped libc.
    let mut end = frames.len();
    while end > 1 && is_libc(&frames[end - 1].1.module) && !frames[end - 1].1.has_name {
        end -= 1;
    }
    let mut shown = &frames[..end];
    if let Some(program) = program {
        let (_, frame) = &frames[program];
        let is_script = frame.is_volatile && frame.has_name;
        if is_script {
            shown = &frames[program..end.max(program + 1)];
        }
    }
    let mut shown = shown.iter().map(|(_, frame)| frame);
    let Some(first) = shown.next().or(clock) else {
        return Caller::unknown();
    };
    let mut next = None;
    let mut outer = Vec::new();
    let mut named = None;
    if depth > 1 {
        next = shown.next();
        for frame in shown.by_ref().take(depth - 2) {
            outer.push(without_line(frame, false));
        }
        let mut callers = next.into_iter().chain(&outer);
        if !callers.any(|frame| frame.has_name) {
            named = shown.find(|frame| frame.has_name);
        }
    }
    let keeps_line = !first.has_name;
    Caller {
        first: first.clone(),
        outer,
        next: next.map(|frame| without_line(frame, keeps_line)),
        named: named.map(|frame| without_line(frame, false)),
    }
}

/// Returns a caller's caller without the line of its call, which would make a row of each.
fn without_line(frame: &Arc<Frame>, keeps_line: bool) -> Arc<Frame> {
    let mut frame = frame.clone();
    if !keeps_line {
        let own = Arc::make_mut(&mut frame);
        own.file = None;
        own.line = None;
    }
    frame
}
