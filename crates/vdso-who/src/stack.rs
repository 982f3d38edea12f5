//! Call chains of another process, and the names of their addresses.
//!
//! A frame's caller comes from `.eh_frame`, or from the frame pointer if the function sets one up.
//! A function with neither, as in a static musl program, is left at the first word of its stack
//! that follows a call of it. Framehop, which unwinds with `.eh_frame` too, cannot do that, and has
//! no i386.
//!
//! The process is not trusted: its files are read with limits, never mapped.

mod bounded;
mod clock_function;
mod file;
mod module;
mod names;
#[cfg(test)]
mod tests;
mod unwind;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use serde::Serialize;
use vdso_doctor::{ProcessError, ProcessVdso};

use crate::perf::Taken;
pub(crate) use bounded::has_room;
use clock_function::is_clock_function;
use module::Module;

/// The name of an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Frame {
    /// Demangled. Without a symbol: the module and the offset in its file.
    pub(crate) function: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// The file's name, `[vdso]`, or `[anon]`.
    pub(crate) module: String,
}

/// An executable mapping.
#[derive(Clone)]
struct Mapping {
    range: Range<u64>,
    offset: u64,
    /// Empty if there is no file.
    path: String,
    inode: u64,
}

impl Mapping {
    /// Identifies its file.
    fn key(&self) -> (String, u64) {
        (self.path.clone(), self.inode)
    }
}

/// A mapped file.
enum Source {
    /// Opened before it is needed, because a process that ended has no paths.
    Open(File),
    /// None if the file cannot be read.
    Read(Option<Rc<Module>>),
}

/// The code of a process.
pub(crate) struct Stacks {
    pid: u32,
    /// One that lives, which may not be the main thread.
    thread: u32,
    vdso: Option<ProcessVdso>,
    /// Sorted.
    mappings: Vec<Mapping>,
    modules: HashMap<(String, u64), Source>,
    frames: HashMap<u64, Frame>,
    /// By program counter.
    rules: HashMap<u64, unwind::Rule>,
    /// What /tmp/perf-PID.map says of code without a file.
    jit: Option<names::PerfMap>,
}

/// The files that are kept open.
const MOST_FILES: usize = 256;

/// The names that are kept.
const MOST_FRAMES: usize = 1 << 14;

const VDSO: &str = "[vdso]";

impl Stacks {
    /// Reads the mappings of a process.
    pub(crate) fn new(pid: u32) -> Result<Self, ProcessError> {
        let mut new = Self {
            pid,
            thread: pid,
            vdso: None,
            mappings: Vec::new(),
            modules: HashMap::new(),
            frames: HashMap::new(),
            rules: HashMap::new(),
            jit: None,
        };
        new.refresh()?;
        // Reading its debug information takes long. If that came with the first sample, others
        // would be lost meanwhile.
        if let Some(program) = new.mappings.iter().find(|mapping| mapping.inode != 0) {
            new.named(program.range.start);
        }
        Ok(new)
    }

    /// Reads the mappings again, after the process mapped something or executed another program.
    /// After an error the known mappings stay.
    pub(crate) fn refresh(&mut self) -> Result<(), ProcessError> {
        self.thread = crate::proc::living_thread(self.pid)?;
        let maps = crate::proc::text(self.thread, "maps")?;
        let mut mappings: Vec<_> = maps.lines().filter_map(mapping).collect();
        mappings.sort_by_key(|mapping| mapping.range.start);
        self.vdso = match ProcessVdso::read(self.pid) {
            Ok(vdso) => Some(vdso),
            Err(error @ (ProcessError::Ended | ProcessError::Denied)) => return Err(error),
            Err(_) => None,
        };
        self.mappings = mappings;
        self.modules.remove(&(VDSO.to_owned(), 0));
        for mapping in &self.mappings {
            if self.modules.len() < MOST_FILES && !self.modules.contains_key(&mapping.key()) {
                if let Ok(file) = self.open(mapping) {
                    self.modules.insert(mapping.key(), Source::Open(file));
                }
            }
        }
        self.frames.clear();
        self.rules.clear();
        self.jit = None;
        Ok(())
    }

    /// Returns the return addresses from the caller of the vDSO function outward, at most 128. If
    /// the thread is not in the vDSO, the program counter is the first.
    pub(crate) fn chain(&mut self, sample: &Taken) -> Vec<u64> {
        let mut chain = unwind::chain(self, sample);
        let inside = chain.iter().take_while(|address| self.is_vdso(**address)).count();
        chain.drain(..inside);
        chain
    }

    /// Returns the name of a return address: the innermost inlined function that is not one of the
    /// clock functions.
    pub(crate) fn frame(&mut self, address: u64) -> Frame {
        if let Some(frame) = self.frames.get(&address) {
            return frame.clone();
        }
        let mut frames = self.named(address.wrapping_sub(1));
        let outermost = frames.len() - 1;
        let program = frames.iter().position(|frame| !is_clock_function(frame)).unwrap_or(outermost);
        let frame = frames.swap_remove(program);
        if self.frames.len() >= MOST_FRAMES {
            self.frames.clear();
        }
        self.frames.insert(address, frame.clone());
        frame
    }

    /// Returns the first address that is the program's: not the vDSO's, and no clock function of
    /// libc, Go, Rust's std, C++'s chrono or the JVM. If there is none, the first.
    pub(crate) fn caller(&mut self, chain: &[u64]) -> Option<u64> {
        let mut is_program = |address: &&u64| !is_clock_function(&self.frame(**address));
        chain.iter().find(&mut is_program).or(chain.first()).copied()
    }

    fn is_vdso(&self, address: u64) -> bool {
        self.vdso.as_ref().is_some_and(|vdso| vdso.range.contains(&address))
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let next = self.mappings.partition_point(|mapping| mapping.range.start <= address);
        self.mappings[..next].last().filter(|mapping| mapping.range.contains(&address))
    }

    /// The module of an address, and the address in its file. The file is read when it is first
    /// needed.
    fn module(&mut self, address: u64) -> Option<(Rc<Module>, u64)> {
        let mapping = self.mapping(address)?.clone();
        let key = mapping.key();
        let offset = address - mapping.range.start + mapping.offset;
        let module = match self.modules.remove(&key) {
            Some(Source::Read(module)) => module,
            source => self.bytes(&mapping, source).ok().and_then(Module::parse).map(Rc::new),
        };
        self.modules.insert(key, Source::Read(module.clone()));
        let module = module?;
        let address = module.address(offset)?;
        Some((module, address))
    }

    fn bytes(&self, mapping: &Mapping, source: Option<Source>) -> io::Result<Rc<[u8]>> {
        match self.vdso.as_ref().filter(|vdso| vdso.range.contains(&mapping.range.start)) {
            Some(vdso) => Ok(vdso.bytes[..].into()),
            None => match source {
                Some(Source::Open(open)) => file::read(open, u64::MAX),
                _ => file::read(self.open(mapping)?, u64::MAX),
            },
        }
    }

    fn open(&self, mapping: &Mapping) -> io::Result<File> {
        if mapping.inode == 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (pid, Range { start, end }) = (self.thread, mapping.range.clone());
        // The first is the mapped file, also if it was removed. It needs CAP_CHECKPOINT_RESTORE.
        file::open(Path::new(&format!("/proc/{pid}/map_files/{start:x}-{end:x}")), 0)
            .or_else(|_| file::open(Path::new(&format!("/proc/{pid}/root{}", mapping.path)), 0))
    }

    /// The functions at an address, the innermost inlined one first; at least one.
    fn named(&mut self, address: u64) -> Vec<Frame> {
        let module = self.module(address);
        let Some(mapping) = self.mapping(address) else {
            return vec![Frame::unknown(format!("{address:#x}"), "[unmapped]")];
        };
        let name = names::of_module(&mapping.path);
        let offset = address - mapping.range.start + mapping.offset;
        if let Some((module, address)) = module {
            let frames = module.frames(address, &name);
            if !frames.is_empty() {
                return frames;
            }
        } else if mapping.inode == 0 {
            let has_jvm = self.mappings.iter().any(|mapping| mapping.path.ends_with("/libjvm.so"));
            let map = self.jit.get_or_insert_with(|| names::PerfMap::read(self.pid, self.thread));
            let function = map.name(address).unwrap_or(if has_jvm { "java (JIT)" } else { "(JIT)" });
            return vec![Frame::unknown(function.to_owned(), &name)];
        }
        vec![Frame::unknown(format!("{name}+{offset:#x}"), &name)]
    }
}

impl Frame {
    fn unknown(function: String, module: &str) -> Self {
        Self { function, file: None, line: None, module: module.to_owned() }
    }
}

/// A line of /proc/PID/maps, if the mapping is executable.
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let is_executable = fields.next()?.contains('x');
    let offset = number(fields.next()?)?;
    let inode = fields.nth(1)?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_start().to_owned();
    let offset = if path == VDSO { 0 } else { offset };
    is_executable.then_some(Mapping { range: number(start)?..number(end)?, offset, path, inode })
}
