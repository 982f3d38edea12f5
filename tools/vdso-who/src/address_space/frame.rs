//! The names of addresses, and which frames of a call chain are shown.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;

use super::clock_function::{Role, is_libc};

/// The name of an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Frame {
    /// The demangled name of the function or, if it has no symbol, the module and the offset in its
    /// file.
    pub(crate) function: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// The file's name, `[vdso]`, or `[anon]`.
    pub(crate) module: String,
    #[serde(skip)]
    pub(crate) has_name: bool,
    /// Whether the address is not mapped, or is in memory without a file on disk, such as the
    /// memory of a just-in-time compiler. Other code can appear at such an address later.
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

    /// Returns the size of the frame's names in bytes.
    fn size(&self) -> usize {
        let file = self.file.as_deref().unwrap_or_default();
        self.function.len() + file.len() + self.module.len()
    }
}

/// The functions at an address. There is more than one if functions are inlined.
pub(super) type Functions = Rc<[(Role, Arc<Frame>)]>;

/// The maximum number of addresses whose functions are kept for one process, and the maximum size
/// of their names in bytes. A malformed file can give 64 inlined functions, each with a name of 16
/// KiB, to each address.
const MOST_FRAMES: usize = 1 << 14;
pub(super) const MOST_NAMES: usize = 16 << 20;

/// The known functions of a process, by return address.
#[derive(Default)]
pub(super) struct KnownFunctions {
    by_address: HashMap<u64, Functions>,
    /// The size of all names in bytes.
    pub(super) size: usize,
}

impl KnownFunctions {
    pub(super) fn get(&self, address: u64) -> Option<Functions> {
        self.by_address.get(&address).cloned()
    }

    /// Keeps the functions of an address that has none yet. If that exceeds a limit, first forgets
    /// all others.
    pub(super) fn insert(&mut self, address: u64, functions: Functions) {
        let mut size = 0;
        for (_, frame) in functions.iter() {
            size += frame.size();
        }
        if self.by_address.len() >= MOST_FRAMES || self.size + size > MOST_NAMES {
            self.clear();
        }
        self.size += size;
        self.by_address.insert(address, functions);
    }

    pub(super) fn clear(&mut self) {
        self.by_address.clear();
        self.size = 0;
    }
}

/// The function that reads the clock, and its callers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) first: Arc<Frame>,
    pub(crate) next: Option<Arc<Frame>>,
    /// The callers beyond the next one, with --depth.
    pub(crate) outer: Vec<Arc<Frame>>,
    /// The first caller beyond `next` and `outer` that has a name. It is set only if no caller in
    /// `next` and `outer` has one.
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

/// Returns whether a chain needs no further frames. That is the case if it has reached `main`, or
/// if both of these hold: it has `depth` frames, counted from the program's first function, and a
/// frame after that function has a name.
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

/// Returns the caller to show for a chain of frames. The chain begins after the functions on the
/// way to the clock. `clock` is the innermost of those functions, and is shown if the chain has no
/// frame.
pub(super) fn caller(
    frames: &[(Role, Arc<Frame>)],
    clock: Option<&Arc<Frame>>,
    depth: usize,
) -> Caller {
    let program = frames.iter().position(|(role, _)| *role == Role::Program);
    // In a stripped libc, the functions that run `main` or a thread have no names, so they are not
    // recognised as such. The frames of libc without a name at the end of the chain are therefore
    // left out.
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

/// Returns a frame without its file and line, unless `keeps_line` is set. With a line, the calls
/// from different lines of the same function would be different rows.
fn without_line(frame: &Arc<Frame>, keeps_line: bool) -> Arc<Frame> {
    let mut frame = frame.clone();
    if !keeps_line {
        let own = Arc::make_mut(&mut frame);
        own.file = None;
        own.line = None;
    }
    frame
}
