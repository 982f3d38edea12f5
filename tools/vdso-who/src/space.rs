//! Call chains of another process, and the names of their addresses: docs/WHO.md says how.
//!
//! The process is not trusted: its files are read with limits, never mapped.

mod bounded;
mod clock_function;
mod debug_file;
mod file;
mod go;
mod module;
mod names;
mod perf_map;
#[cfg(test)]
#[path = "../tests/unit/space.rs"]
mod tests;
mod unwind;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::mapping::{self, FileId, Mapping, VDSO};
use crate::perf::Taken;
use crate::progress::Progress;
use crate::{Result, proc};
pub(crate) use bounded::has_room;
use clock_function::{Role, role};
pub(crate) use debug_file::check_debuginfod;
use file::Image;
use module::Module;
use perf_map::PerfMap;

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
    is_volatile: bool,
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

/// The functions of an address.
type Functions = Rc<[(Role, Arc<Frame>)]>;

/// A mapped file, or the vDSO. It is opened before it is needed, because a process that ended has
/// no paths.
struct Mapped {
    /// None if it cannot be opened.
    image: Option<Image>,
    /// Parsed when it is needed: for a frame of a clock read. None if it is no ELF file.
    module: OnceCell<Option<Rc<Module>>>,
}

impl Mapped {
    fn new(image: Option<Image>) -> Rc<Self> {
        Rc::new(Self {
            image,
            module: OnceCell::new(),
        })
    }
}

/// The files of all processes.
#[derive(Clone, Default)]
pub(crate) struct Files {
    known: Rc<RefCell<HashMap<FileId, Rc<Mapped>>>>,
    /// Where the file is shown whose debug information a debuginfod server is asked for. Without it
    /// no server is asked.
    downloads: Option<Arc<Progress>>,
}

impl Files {
    pub(crate) fn new(downloads: Option<Arc<Progress>>) -> Self {
        Self {
            downloads,
            ..Self::default()
        }
    }
}

/// The code of a process.
pub(crate) struct Space {
    pid: u32,
    /// One that lives, which may not be the main thread.
    thread: u32,
    /// Sorted.
    mappings: Vec<Mapping>,
    /// Read when it is needed.
    vdso: OnceCell<Rc<Mapped>>,
    files: Files,
    frames: HashMap<u64, Functions>,
    /// By program counter.
    rules: HashMap<u64, unwind::Rule>,
    /// The names of code without a file.
    jit: PerfMap,
    read: Instant,
    /// Whether its mappings could not be read. It may have ended.
    pub(crate) is_hidden: bool,
}

/// The files that are kept open.
const MOST_FILES: usize = 256;

/// The names that are kept of a process.
const MOST_FRAMES: usize = 1 << 14;

/// How often mappings that no record reported are looked for.
const PAUSE: Duration = Duration::from_millis(100);

impl Space {
    /// Creates a process whose mappings follow.
    pub(crate) fn new(pid: u32, files: Files) -> Self {
        let (mappings, vdso, frames, rules, jit) = Default::default();
        let thread = proc::living_thread(pid).unwrap_or(pid);
        let (read, is_hidden) = (Instant::now(), false);
        Self {
            pid,
            thread,
            mappings,
            vdso,
            files,
            frames,
            rules,
            jit,
            read,
            is_hidden,
        }
    }

    /// Reads a process that runs.
    pub(crate) fn of(pid: u32, files: Files) -> Result<Self> {
        let mut new = Self::new(pid, files);
        new.refresh()?;
        Ok(new)
    }

    /// Copies the code into a process that this one started.
    pub(crate) fn forked(&self, pid: u32) -> Self {
        let mut new = Self::new(pid, self.files.clone());
        new.mappings.clone_from(&self.mappings);
        new.vdso.clone_from(&self.vdso);
        new
    }

    /// Reads the mappings.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        let new = mapping::of_process(self.pid)?;
        self.thread = proc::living_thread(self.pid).unwrap_or(self.pid);
        self.mappings.clear();
        for mapping in new {
            self.map(mapping);
        }
        Ok(())
    }

    /// Adds a mapping, in the place of others.
    pub(crate) fn map(&mut self, new: Mapping) {
        if new.file.inode != 0 && self.files.known.borrow().len() < MOST_FILES {
            self.mapped(&new);
        }
        self.is_hidden = false;
        let first = self
            .mappings
            .partition_point(|old| old.range.end <= new.range.start);
        let others = self.mappings[first..].partition_point(|old| old.range.start < new.range.end);
        let others = first..first + others;
        // Nothing is kept by address for compiled code, because a compiler changes its memory each
        // millisecond.
        let keeps = self.mappings[others.clone()]
            .iter()
            .chain([&new])
            .any(|one| one.file.inode != 0);
        if self.mappings[others.clone()] == [new.clone()] {
            return;
        }
        if keeps || &*new.path == VDSO {
            if &*new.path == VDSO {
                self.vdso.take();
            }
            self.frames.clear();
            self.rules.clear();
        }
        self.mappings.splice(others, [new]);
    }

    /// Returns whether there is a vDSO, as far as the mappings are known.
    pub(crate) fn has_vdso(&self) -> bool {
        self.mappings.is_empty() || self.mappings.iter().any(|mapping| &*mapping.path == VDSO)
    }

    /// Returns the return addresses from the caller of the vDSO function outward, at most 128. If
    /// the thread is not in the vDSO, the program counter is the first.
    pub(crate) fn chain(&mut self, sample: &Taken) -> Vec<u64> {
        let mut chain = unwind::chain(self, sample);
        let inside = chain
            .iter()
            .take_while(|address| self.is_vdso(**address))
            .count();
        chain.drain(..inside);
        chain
    }

    /// Returns the functions of a return address, the innermost inlined one first; at least one.
    fn frames(&mut self, address: u64) -> Functions {
        if let Some(frames) = self.frames.get(&address) {
            return frames.clone();
        }
        let frames = self.named(address.wrapping_sub(1)).into_iter();
        let frames: Functions = frames
            .map(|frame| (role(&frame), Arc::new(frame)))
            .collect();
        if self.frames.len() >= MOST_FRAMES {
            self.frames.clear();
        }
        // Other code can come to an address without a file.
        if frames.iter().all(|(_, frame)| !frame.is_volatile) {
            self.frames.insert(address, frames.clone());
        }
        frames
    }

    /// Returns the names of a return address, the outermost function first.
    pub(crate) fn functions(&mut self, address: u64) -> Vec<String> {
        self.frames(address)
            .iter()
            .rev()
            .map(|(_, frame)| frame.function.clone())
            .collect()
    }

    /// Returns the program's function that reads the clock, and the next one. `wrappers.txt` names
    /// the functions that are on the way. A script's function is in the place of the interpreter's
    /// functions that run it, if a perf map names it.
    pub(crate) fn caller(&mut self, chain: &[u64]) -> Caller {
        let (mut clock, mut frames) = (None, Vec::<(Role, Arc<Frame>)>::new());
        for (role, frame) in chain
            .iter()
            .flat_map(|address| self.frames(*address).to_vec())
        {
            if role == Role::Clock && frames.is_empty() {
                clock.get_or_insert(frame);
                continue;
            }
            let is_last = frames.iter().any(|(role, _)| *role == Role::Program);
            frames.push((role, frame));
            if is_last {
                break;
            }
        }
        let script = frames.iter().position(|(role, _)| *role == Role::Program);
        let script = script.filter(|at| frames[*at].1.is_volatile && frames[*at].1.has_name);
        let mut frames = frames.drain(script.unwrap_or(0)..).map(|(_, frame)| frame);
        let Some(first) = frames.next().or(clock) else {
            return Caller::unknown();
        };
        // The line of its call would make a row of each.
        let without_line = |next: Arc<Frame>| Frame {
            line: None,
            file: None,
            ..Frame::clone(&next)
        };
        let next = frames.next().map(|next| {
            if first.has_name {
                without_line(next).into()
            } else {
                next
            }
        });
        Caller { first, next }
    }

    /// Returns whether an address is in the vDSO. One without a mapping may be in a vDSO that was
    /// moved.
    pub(crate) fn is_vdso(&mut self, address: u64) -> bool {
        if self.mapping(address).is_none() && self.read.elapsed() > PAUSE {
            // If the process ended, the known mappings stay.
            let _ = self.refresh();
            self.read = Instant::now();
        }
        self.mapping(address)
            .is_some_and(|mapping| &*mapping.path == VDSO)
    }

    /// Returns the symbol of a function of the vDSO.
    pub(crate) fn symbol(&mut self, address: u64) -> Option<String> {
        let (_, frame) = self.frames(address.wrapping_add(1)).last()?.clone();
        frame.has_name.then(|| frame.function.clone())
    }

    /// Returns the functions of the vDSO and their addresses.
    pub(crate) fn vdso_symbols(&self) -> Option<Vec<(String, u64)>> {
        let start = self
            .mappings
            .iter()
            .find(|mapping| &*mapping.path == VDSO)?
            .range
            .start;
        let (module, _) = self.module(start)?;
        let first = module.address(0)?;
        let address = |address: u64| address.wrapping_sub(first).wrapping_add(start);
        Some(
            module
                .named_symbols()
                .map(|(name, start)| (name, address(start)))
                .collect(),
        )
    }

    /// Returns the code before an address.
    pub(crate) fn code_before<const BYTES: usize>(&self, address: u64) -> Option<[u8; BYTES]> {
        let start = address.checked_sub(BYTES as u64)?;
        let mapping = self.mapping(start)?;
        let mut code = [0; BYTES];
        let offset = start - mapping.range.start + mapping.offset;
        self.mapped(mapping)
            .image
            .as_ref()?
            .fill(&mut code, offset)
            .map(|()| code)
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let next = self
            .mappings
            .partition_point(|mapping| mapping.range.start <= address);
        self.mappings[..next]
            .last()
            .filter(|mapping| mapping.range.contains(&address))
    }

    /// Returns the module of an address, and the address in its file, which is read when it is
    /// first needed.
    fn module(&self, address: u64) -> Option<(Rc<Module>, u64)> {
        let mapping = self.mapping(address)?;
        let mapped = self.mapped(mapping);
        let parse = || {
            let (image, downloads) = (mapped.image.clone()?, self.files.downloads.as_deref());
            Module::parse(image, &mapping.path, |path| self.find(path), downloads).map(Rc::new)
        };
        let module = mapped.module.get_or_init(parse).clone()?;
        let address = module.address(address - mapping.range.start + mapping.offset)?;
        Some((module, address))
    }

    /// Opens the file of a mapping. If too many files are known, forgets them, and they are opened
    /// again when they are needed.
    fn mapped(&self, mapping: &Mapping) -> Rc<Mapped> {
        if &*mapping.path == VDSO {
            return self
                .vdso
                .get_or_init(|| Mapped::new(self.read_vdso(mapping)))
                .clone();
        }
        let known = self.files.known.borrow().get(&mapping.file).cloned();
        known.unwrap_or_else(|| {
            let mapped = Mapped::new(self.open(mapping).ok().map(|file| Image::File(file.into())));
            let mut known = self.files.known.borrow_mut();
            if known.len() >= MOST_FILES {
                known.clear();
            }
            known.insert(mapping.file, mapped.clone());
            mapped
        })
    }

    /// Copies the image of the process, or this program's if the process ended.
    fn read_vdso(&self, mapping: &Mapping) -> Option<Image> {
        let Range { start, end } = mapping.range;
        let mut bytes = vec![
            0;
            usize::try_from(end - start)
                .ok()
                .filter(|size| *size <= 1 << 20)?
        ];
        let read = |pid, bytes: &mut [u8], at| {
            File::open(format!("/proc/{pid}/mem"))?.read_exact_at(bytes, at)
        };
        if read(self.thread, &mut bytes, start).is_err() {
            let own = proc::text(std::process::id(), "maps").ok()?;
            let own = mapping::vdso(&own)?;
            // A 32-bit process has another image.
            let is_same = own.end - own.start == end - start && end > 1 << 32;
            read(
                std::process::id(),
                &mut bytes,
                Some(own.start).filter(|_| is_same)?,
            )
            .ok()?;
        }
        Some(Image::Bytes(bytes.into()))
    }

    fn open(&self, mapping: &Mapping) -> io::Result<File> {
        if mapping.file.inode == 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (pid, Range { start, end }) = (self.thread, mapping.range.clone());
        let path = &mapping.path;
        // The first path leads to the mapped file even if it was removed, but needs
        // CAP_CHECKPOINT_RESTORE. The last is for a process that ended.
        file::open(
            Path::new(&format!("/proc/{pid}/map_files/{start:x}-{end:x}")),
            0,
        )
        .or_else(|_| file::open(Path::new(&format!("/proc/{pid}/root{path}")), 0))
        .or_else(|_| {
            let file = file::open(Path::new(&**path), 0)?;
            let is_same = file.metadata()?.ino() == mapping.file.inode;
            if is_same {
                Ok(file)
            } else {
                Err(io::ErrorKind::NotFound.into())
            }
        })
    }

    /// Opens a file of debug information, in the process's file system or in this program's.
    fn find(&self, path: &Path) -> Option<Image> {
        let inside =
            Path::new(&format!("/proc/{}/root", self.thread)).join(path.strip_prefix("/").ok()?);
        let file = file::open(&inside, 0)
            .or_else(|_| file::open(path, 0))
            .ok()?;
        Some(Image::File(file.into()))
    }

    /// Opens /tmp/perf-PID.map in the process's file system and by its own number, if it exists.
    fn open_perf_map(pid: u32, thread: u32) -> io::Result<File> {
        let own = proc::status(pid, "NSpid");
        let own = own.as_deref().and_then(|own| own.split_whitespace().last());
        let path = format!("/proc/{thread}/root/tmp/perf-{}.map", own.unwrap_or("self"));
        // A link may lead to a file that has an effect when it is read, such as /proc/kmsg.
        let file = file::open(Path::new(&path), libc::O_NOFOLLOW)?;
        // Anybody can write to /tmp. perf(1) takes the files of the user and of root, too.
        let (owner, users) = (
            file.metadata()?.uid(),
            proc::status(thread, "Uid").unwrap_or_default(),
        );
        let is_own = owner == 0
            || users
                .split_whitespace()
                .any(|user| user == owner.to_string());
        if is_own {
            Ok(file)
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }

    /// Returns the functions at an address, the innermost inlined one first; at least one.
    fn named(&mut self, address: u64) -> Vec<Frame> {
        let module = self.module(address);
        let Some(mapping) = self.mapping(address) else {
            let unmapped = Frame::unknown(format!("{address:#x}"), "[unmapped]");
            return vec![Frame {
                is_volatile: true,
                ..unmapped
            }];
        };
        let name = names::of_module(&mapping.path);
        let offset = address - mapping.range.start + mapping.offset;
        if let Some((module, address)) = module {
            let frames = module.frames(address, &name);
            if !frames.is_empty() {
                return frames;
            }
        } else if mapping.file.inode == 0 || mapping.path.starts_with("/memfd:") {
            let (pid, thread) = (self.pid, self.thread);
            let function = self.jit.name(address, || Self::open_perf_map(pid, thread));
            let has_jvm = || {
                self.mappings
                    .iter()
                    .any(|mapping| mapping.path.ends_with("/libjvm.so"))
            };
            let unknown = || match self.jit.is_full() {
                true => "(JIT: its perf map has more than 1 GiB)",
                false if has_jvm() => "java (JIT)",
                false => "(JIT)",
            };
            let has_name = function.is_some();
            let function = function.unwrap_or_else(|| unknown().into());
            return vec![Frame {
                is_volatile: true,
                has_name,
                ..Frame::named(function, &name)
            }];
        }
        vec![Frame::unknown(format!("{name}+{offset:#x}"), &name)]
    }
}

impl Frame {
    fn named(function: String, module: &str) -> Self {
        let (file, line, has_name, is_volatile) = (None, None, true, false);
        Self {
            function,
            file,
            line,
            module: module.to_owned(),
            has_name,
            is_volatile,
        }
    }

    pub(crate) fn unknown(function: String, module: &str) -> Self {
        Self {
            has_name: false,
            ..Self::named(function, module)
        }
    }
}
