//! Call chains of another process, and the names of the addresses in them. MEASUREMENTS.md explains
//! how chains and names are found.
//!
//! The process is not trusted: its files are read with limits, never mapped.

mod bounded;
mod clock_function;
mod debug_file;
mod file;
mod frame;
mod go;
mod mapped;
mod module;
mod names;
mod perf_map;
#[cfg(test)]
#[path = "../../tests/unit/address_space.rs"]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::mapping::Mapping;
use crate::perf::Sample;
use crate::unwind::{Code as _, Unwinder};
pub(crate) use bounded::{has_room, resident_memory, return_memory};
use clock_function::{Role, role};
pub(crate) use debug_file::check_debuginfod;
pub(crate) use frame::{Caller, Frame};
use frame::{Functions, KnownFunctions};
pub(crate) use mapped::Files;
use mapped::Mapped;
use perf_map::PerfMap;

/// The code of a process.
pub(crate) struct AddressSpace {
    mapped: Mapped,
    unwinder: Unwinder,
    /// The functions at each return address.
    frames: KnownFunctions,
    /// The names of code without a file.
    jit: PerfMap,
    read: Instant,
    /// Whether the process is in a gVisor sandbox. None if a mapping was added after the last
    /// check.
    is_sandboxed: Option<bool>,
    /// Whether the mappings of the process could not be read, for example because it has ended.
    pub(crate) is_hidden: bool,
}

/// If an address is in no known mapping, the mappings are read again, but not more often than this.
const PAUSE: Duration = Duration::from_millis(100);

impl AddressSpace {
    /// Creates an address space without mappings, which are added later.
    pub(crate) fn new(pid: u32, files: Files) -> Self {
        Self {
            mapped: Mapped::new(pid, files),
            unwinder: Unwinder::default(),
            frames: KnownFunctions::default(),
            jit: PerfMap::default(),
            read: Instant::now(),
            is_sandboxed: None,
            is_hidden: false,
        }
    }

    /// Reads the address space of a running process.
    pub(crate) fn of(pid: u32, files: Files) -> Result<Self> {
        let mut new = Self::new(pid, files);
        new.refresh()?;
        Ok(new)
    }

    /// Returns the address space of a child process that was just forked. The child's mappings are
    /// those of its parent. `pid` is the child's id.
    pub(crate) fn forked(&self, pid: u32) -> Self {
        Self {
            mapped: self.mapped.forked(pid),
            unwinder: Unwinder::default(),
            frames: KnownFunctions::default(),
            jit: PerfMap::default(),
            read: Instant::now(),
            is_sandboxed: None,
            is_hidden: false,
        }
    }

    /// Reads the mappings again.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        for mapping in self.mapped.read()? {
            self.map(mapping);
        }
        Ok(())
    }

    /// Adds a mapping, which replaces the mappings that it overlaps.
    pub(crate) fn map(&mut self, new: Mapping) {
        self.is_hidden = false;
        self.is_sandboxed = None;
        if self.mapped.add(new) {
            self.frames.clear();
            self.unwinder.clear();
        }
    }

    /// Returns whether there is a vDSO. Returns true as well if no mappings are known.
    pub(crate) fn has_vdso(&self) -> bool {
        self.mapped.has_vdso()
    }

    /// Returns whether the process is in a gVisor sandbox, where its clock reads cannot be seen.
    pub(crate) fn is_sandboxed(&mut self) -> bool {
        if let Some(is_sandboxed) = self.is_sandboxed {
            return is_sandboxed;
        }
        let mut is_sandboxed = self.mapped.has_gvisor();
        if is_sandboxed {
            // The processes of gVisor itself map the sandbox's memory as well, but unlike the
            // processes in the sandbox, they have a vDSO. The kernel does not report that a process
            // has unmapped its vDSO, so the mappings are read again before the check.
            let _ = self.refresh();
            is_sandboxed = !self.has_vdso();
        }
        self.is_sandboxed = Some(is_sandboxed);
        is_sandboxed
    }

    /// Returns the return addresses from the caller of the vDSO function outward, at most 128. If
    /// the thread of the sample is not in the vDSO, the first address is its program counter.
    pub(crate) fn chain(&mut self, sample: &Sample) -> Vec<u64> {
        let mut chain = self.unwinder.chain(&self.mapped, sample);
        let mut inside = 0;
        while inside < chain.len() && self.is_vdso(chain[inside]) {
            inside += 1;
        }
        chain.drain(..inside);
        chain
    }

    /// Returns the functions at a return address: at least one, and the innermost inlined function
    /// first.
    fn frames(&mut self, address: u64) -> Functions {
        if let Some(functions) = self.frames.get(address) {
            return functions;
        }
        let mut functions = Vec::new();
        let mut is_volatile = false;
        for frame in self.named(address.wrapping_sub(1)) {
            is_volatile |= frame.is_volatile;
            functions.push((role(&frame), Arc::new(frame)));
        }
        let functions: Functions = functions.into();
        // The functions at an address without a file are not kept, because other code can appear
        // there.
        if !is_volatile {
            self.frames.insert(address, functions.clone());
        }
        functions
    }

    /// Returns the names of the functions at a return address, the outermost function first.
    pub(crate) fn functions(&mut self, address: u64) -> Vec<String> {
        let frames = self.frames(address);
        let names = frames.iter().rev();
        names.map(|(_, frame)| frame.function.clone()).collect()
    }

    /// Returns the program's function that reads the clock, and its callers: at most `depth`
    /// functions in all. The functions of libc, and those that `wrappers.txt` lists, are skipped.
    /// If a perf map names a script's function, that function replaces the interpreter's functions
    /// that run it.
    pub(crate) fn caller(&mut self, chain: &[u64], depth: usize) -> Caller {
        let mut clock = None;
        let mut frames = Vec::new();
        'chain: for address in chain {
            for (role, frame) in self.frames(*address).iter() {
                if *role == Role::Clock && frames.is_empty() {
                    clock.get_or_insert_with(|| frame.clone());
                    continue;
                }
                if *role == Role::Start {
                    break 'chain;
                }
                frames.push((*role, frame.clone()));
                if frame::are_enough(&frames, depth) {
                    break 'chain;
                }
            }
        }
        frame::caller(&frames, clock.as_ref(), depth)
    }

    /// Returns whether an address is in the vDSO. If the address has no mapping, reads the mappings
    /// again, because the vDSO may have been moved.
    pub(crate) fn is_vdso(&mut self, address: u64) -> bool {
        if !self.mapped.is_mapped(address) && self.read.elapsed() > PAUSE {
            // If the process has ended, `refresh` fails, and the known mappings stay.
            let _ = self.refresh();
            self.read = Instant::now();
        }
        match self.mapped.mapping(address) {
            Some(mapping) => mapping.is_vdso(),
            None => false,
        }
    }

    /// Returns the name of the vDSO function at an address.
    pub(crate) fn symbol(&mut self, address: u64) -> Option<String> {
        let frames = self.frames(address.wrapping_add(1));
        let (_, frame) = frames.last()?;
        if !frame.has_name {
            return None;
        }
        Some(frame.function.clone())
    }

    /// Returns the name of the vDSO function in which the thread of a sample was. If the code there
    /// has no symbol, this is the innermost caller with a symbol that is still in the vDSO.
    pub(crate) fn vdso_function(&mut self, sample: &Sample) -> Option<String> {
        let name = self.symbol(sample.registers.pc);
        if name.is_some() {
            return name;
        }
        let chain = self.unwinder.chain(&self.mapped, sample);
        for return_address in chain.into_iter().skip(1) {
            let call = return_address.wrapping_sub(1);
            if !self.is_vdso(call) {
                break;
            }
            let name = self.symbol(call);
            if name.is_some() {
                return name;
            }
        }
        None
    }

    /// Returns the functions of the vDSO and their addresses.
    pub(crate) fn vdso_symbols(&self) -> Option<Vec<(String, u64)>> {
        self.mapped.vdso_symbols()
    }

    /// Fills a buffer with the code before an address.
    pub(crate) fn code_before(&self, address: u64, code: &mut [u8]) -> Option<()> {
        self.mapped.code_before(address, code)
    }

    /// Returns the functions at an address: at least one, and the innermost inlined function first.
    fn named(&mut self, address: u64) -> Vec<Frame> {
        let Some(mapping) = self.mapped.mapping(address) else {
            return vec![Frame {
                is_volatile: true,
                ..Frame::unknown(format!("{address:#x}"), "[unmapped]")
            }];
        };
        let name = names::of_module(&mapping.path);
        let offset = mapping.offset_of(address);
        if let Some((module, address)) = self.mapped.module(address) {
            let frames = module.frames(address, &name);
            if !frames.is_empty() {
                return frames;
            }
        } else if !mapping.has_file() || mapping.path.starts_with("/memfd:") {
            return vec![self.compiled(address, &name)];
        }
        vec![Frame::unknown(format!("{name}+{offset:#x}"), &name)]
    }

    /// Returns whether the process is younger than its perf map.
    pub(crate) fn has_stale_map(&self) -> bool {
        self.jit.is_stale
    }

    /// Returns the frame for an address in code without a file. If the function has no name, a text
    /// takes the place of the name. The text is `[anon]` unless there is a perf map or a JVM,
    /// because only these show that the code is just-in-time compiled. Otherwise the program might
    /// have moved the code from its file to other memory, as `node --use-largepages`, BOLT and
    /// ClickHouse do.
    fn compiled(&mut self, address: u64, module: &str) -> Frame {
        let mapped = &self.mapped;
        let open = || perf_map::open(mapped.pid(), mapped.thread());
        let function = self.jit.name(address, open);
        let has_name = function.is_some();
        let function = match function {
            Some(function) => function,
            None if self.jit.is_full() => "(JIT: its perf map has more than 1 GiB)".into(),
            None if mapped.has_jvm() => "java (JIT)".into(),
            None if self.jit.exists() => "(JIT)".into(),
            None => "[anon]".into(),
        };
        Frame {
            is_volatile: true,
            has_name,
            ..Frame::named(function, module)
        }
    }
}
