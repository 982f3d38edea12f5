//! The names of addresses, and which of a call chain are shown.

use std::sync::Arc;

use serde::Serialize;

use super::clock_function::Role;

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
}

impl Caller {
    pub(crate) fn unknown() -> Self {
        Self {
            first: Arc::new(Frame::unknown("[unknown]".into(), "")),
            next: None,
        }
    }
}

/// Returns the caller in a chain of frames without the functions of the clock, of which `clock` is
/// the innermost.
pub(super) fn caller(frames: &[(Role, Arc<Frame>)], clock: Option<Arc<Frame>>) -> Caller {
    let program = frames.iter().position(|(role, _)| *role == Role::Program);
    let mut shown = frames;
    if let Some(program) = program {
        let (_, frame) = &frames[program];
        let is_script = frame.is_volatile && frame.has_name;
        if is_script {
            shown = &frames[program..];
        }
    }
    let mut shown = shown.iter().map(|(_, frame)| frame.clone());
    let Some(first) = shown.next().or(clock) else {
        return Caller::unknown();
    };
    let mut next = shown.next();
    if let Some(frame) = &mut next {
        if first.has_name {
            // The line of its call would make a row of each.
            let frame = Arc::make_mut(frame);
            frame.file = None;
            frame.line = None;
        }
    }
    Caller { first, next }
}
