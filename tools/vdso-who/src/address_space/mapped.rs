//! The mappings of a process, and their files.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit};

use super::file::{self, Image, Version};
use super::module::Module;
use crate::error::Result;
use crate::mapping::{self, FileId, Mapping};
use crate::proc;
use crate::progress::Progress;
use crate::unwind::{Code, Function};

/// The maximum number of files that are kept open, unless an eighth of the limit on open files is
/// less. Each of these files can have a debug file, which is open as well.
const MOST_FILES: usize = 256;

/// The file that contains the memory of the programs in a gVisor sandbox.
const GVISOR: &str = "/memfd:runsc-memory";

/// The maximum size of a vDSO. A larger one is not read.
const MOST_OF_VDSO: u64 = 1 << 20;

/// A mapped file, or the vDSO. The file is opened before it is needed, because /proc does not show
/// the paths of a process that has ended.
struct OpenFile {
    /// None if the file cannot be opened, or was overwritten after the process had mapped it.
    image: Option<Image>,
    /// Parsed when it is first needed, for a frame of a clock read. None if it is not an ELF file.
    module: OnceCell<Option<Rc<Module>>>,
}

impl OpenFile {
    fn new(image: Option<Image>) -> Rc<Self> {
        Rc::new(Self {
            image,
            module: OnceCell::new(),
        })
    }

    fn is_original(&self) -> bool {
        match &self.image {
            Some(image) => image.is_original(),
            None => true,
        }
    }

    fn version(&self) -> Option<Version> {
        self.image.as_ref()?.version()
    }
}

/// A file that a process has mapped, if the file is still open, and the version that it had when it
/// was first opened.
type Opened = (Weak<OpenFile>, Option<Version>);

/// The files of all processes.
#[derive(Clone)]
pub(crate) struct Files {
    most: usize,
    known: Rc<RefCell<HashMap<FileId, Rc<OpenFile>>>>,
    /// Receives the name of the file whose debug information is being downloaded from a debuginfod
    /// server. If None, nothing is downloaded.
    downloads: Option<Arc<Progress>>,
}

impl Files {
    pub(crate) fn new(downloads: Option<Arc<Progress>>) -> Self {
        let mut most = MOST_FILES;
        if let Ok((limit, _)) = getrlimit(Resource::RLIMIT_NOFILE) {
            most = most.min(limit as usize / 8);
        }
        Self {
            most,
            known: Rc::default(),
            downloads,
        }
    }

    /// Closes the files.
    pub(crate) fn forget(&self) {
        let mut known = self.known.borrow_mut();
        known.clear();
        known.shrink_to_fit();
    }

    fn are_too_many(&self) -> bool {
        self.known.borrow().len() >= self.most
    }
}

impl Default for Files {
    fn default() -> Self {
        Self::new(None)
    }
}

/// The mappings of a process.
pub(super) struct Mapped {
    pid: u32,
    /// A thread that still has the process's memory. This is not the main thread if the main thread
    /// has ended.
    thread: u32,
    /// The mappings, sorted by address. A forked process shares them with its parent until either
    /// maps something.
    pub(super) mappings: Rc<Vec<Mapping>>,
    /// The vDSO, which is read when it is needed.
    vdso: OnceCell<Rc<OpenFile>>,
    files: Files,
    /// The files of this process. The versions are kept for each process, because another process
    /// may have mapped the same file when the file had different content.
    opened: RefCell<HashMap<FileId, Opened>>,
}

impl Mapped {
    pub(super) fn new(pid: u32, files: Files) -> Self {
        Self {
            pid,
            thread: proc::living_thread(pid).unwrap_or(pid),
            mappings: Rc::default(),
            vdso: OnceCell::new(),
            files,
            opened: RefCell::default(),
        }
    }

    /// Returns the mappings of a child process that was just forked: those of its parent. `pid` is
    /// the child's id.
    pub(super) fn forked(&self, pid: u32) -> Self {
        Self {
            mappings: self.mappings.clone(),
            vdso: self.vdso.clone(),
            opened: self.opened.clone(),
            ..Self::new(pid, self.files.clone())
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn thread(&self) -> u32 {
        self.thread
    }

    /// Reads the current mappings of the process, and forgets the known ones.
    pub(super) fn read(&mut self) -> Result<Vec<Mapping>> {
        let new = mapping::of_process(self.pid)?;
        self.thread = proc::living_thread(self.pid).unwrap_or(self.pid);
        self.mappings = Rc::default();
        Ok(new)
    }

    /// Adds a mapping, which replaces the mappings that it overlaps. Returns whether names and
    /// unwind rules that were found for its addresses may now be out of date.
    ///
    /// For code without a file, nothing can be out of date: its names are not kept, and it is
    /// always unwound with the frame pointer. The names are not kept because a just-in-time
    /// compiler can change its mappings every millisecond, and the names would have to be found
    /// again after each change.
    pub(super) fn add(&mut self, new: Mapping) -> bool {
        if new.has_file() {
            self.opened.borrow_mut().remove(&new.file);
            if !self.files.are_too_many() {
                self.open_file(&new);
            }
        }
        let mappings = &self.mappings;
        let first = mappings.partition_point(|old| old.range.end <= new.range.start);
        let end = mappings.partition_point(|old| old.range.start < new.range.end);
        let others = first..end.max(first);
        let old = &self.mappings[others.clone()];
        if let [old] = old {
            if old.is_same(&new) {
                return false;
            }
        }
        let has_file = new.has_file() || old.iter().any(Mapping::has_file);
        let is_vdso = new.is_vdso();
        if is_vdso {
            self.vdso.take();
        }
        Rc::make_mut(&mut self.mappings).splice(others, [new]);
        has_file || is_vdso
    }

    /// Returns whether there is a vDSO. Returns true as well if no mappings are known.
    pub(super) fn has_vdso(&self) -> bool {
        self.mappings.is_empty() || self.mappings.iter().any(Mapping::is_vdso)
    }

    /// Returns whether the process maps the memory of a gVisor sandbox.
    pub(super) fn has_gvisor(&self) -> bool {
        let mut mappings = self.mappings.iter();
        mappings.any(|mapping| mapping.path.starts_with(GVISOR))
    }

    pub(super) fn has_jvm(&self) -> bool {
        let mut mappings = self.mappings.iter();
        mappings.any(|mapping| mapping.path.ends_with("/libjvm.so"))
    }

    pub(super) fn mapping(&self, address: u64) -> Option<&Mapping> {
        let next = self
            .mappings
            .partition_point(|mapping| mapping.range.start <= address);
        let last = self.mappings[..next].last()?;
        if !last.range.contains(&address) {
            return None;
        }
        Some(last)
    }

    /// Returns the functions of the vDSO and their addresses.
    pub(super) fn vdso_symbols(&self) -> Option<Vec<(String, u64)>> {
        let vdso = self.mappings.iter().find(|mapping| mapping.is_vdso())?;
        let start = vdso.range.start;
        let (module, _) = self.module(start)?;
        let first = module.address(0)?;
        let mut symbols = Vec::new();
        for (name, address) in module.named_symbols() {
            symbols.push((name, address.wrapping_sub(first).wrapping_add(start)));
        }
        Some(symbols)
    }

    /// Returns the module of an address, and the address within that module. The module's file is
    /// read when it is first needed.
    pub(super) fn module(&self, address: u64) -> Option<(Rc<Module>, u64)> {
        let mapping = self.mapping(address)?;
        let file = self.open_file(mapping);
        let parse = || {
            let image = file.image.clone()?;
            let downloads = self.files.downloads.as_deref();
            let module = Module::parse(image, &mapping.path, |path| self.find(path), downloads)?;
            Some(Rc::new(module))
        };
        let module = file.module.get_or_init(parse).clone()?;
        let address = module.address(mapping.offset_of(address))?;
        Some((module, address))
    }

    /// Opens the file of a mapping. If too many files are open, closes all the others. Each of them
    /// is opened again when it is needed.
    fn open_file(&self, mapping: &Mapping) -> Rc<OpenFile> {
        if mapping.is_vdso() {
            let open = || OpenFile::new(self.read_vdso(mapping));
            return self.vdso.get_or_init(open).clone();
        }
        let opened = self.opened.borrow().get(&mapping.file).cloned();
        let mut before = None;
        if let Some((file, version)) = opened {
            if let Some(file) = file.upgrade() {
                return file;
            }
            before = version;
        }
        let mut file = self.known_file(mapping);
        if let Some(now) = file.version() {
            let is_other = before.is_some_and(|before| !before.is_same(now));
            if is_other || now.is_changed_after(mapping.seen) {
                // The file was overwritten. The code that this process runs is no longer in any
                // file.
                file = OpenFile::new(None);
            }
        }
        let version = before.or(file.version());
        let mut opened = self.opened.borrow_mut();
        opened.insert(mapping.file, (Rc::downgrade(&file), version));
        file
    }

    /// Returns the file of a mapping with the content that it has now. Opens the file if it is not
    /// open, or if it has been written to since it was opened. If another process could not open
    /// the file, tries it again, because its path may lead to the file only from this process.
    fn known_file(&self, mapping: &Mapping) -> Rc<OpenFile> {
        let known = self.files.known.borrow().get(&mapping.file).cloned();
        if let Some(known) = known {
            if known.image.is_some() && known.is_original() {
                return known;
            }
        }
        let image = match self.open(mapping) {
            Ok(file) => Image::of(file).ok(),
            Err(_) => None,
        };
        let file = OpenFile::new(image);
        let are_too_many = self.files.are_too_many();
        let mut known = self.files.known.borrow_mut();
        if are_too_many {
            known.clear();
        }
        known.insert(mapping.file, file.clone());
        file
    }

    /// Copies the vDSO of the process. If the process has ended, its memory cannot be read. Then
    /// the function copies the vDSO of this program, but only if the two can be the same image:
    /// they must have the same size, and the process must not be a 32-bit one.
    fn read_vdso(&self, mapping: &Mapping) -> Option<Image> {
        let size = mapping.range.end - mapping.range.start;
        if size > MOST_OF_VDSO {
            return None;
        }
        let mut bytes = vec![0; size as usize];
        if read_memory(self.thread, &mut bytes, mapping.range.start).is_err() {
            let pid = std::process::id();
            let own = mapping::vdso(&proc::text(pid, "maps").ok()?)?;
            // A 32-bit process has a different vDSO.
            let is_same = own.end - own.start == size && mapping.range.end > 1 << 32;
            if !is_same {
                return None;
            }
            read_memory(pid, &mut bytes, own.start).ok()?;
        }
        Some(Image::Bytes(bytes.into()))
    }

    /// Opens the file of a mapping. Four paths are tried. `map_files` leads to the mapped file even
    /// if it was removed or replaced, but needs CAP_CHECKPOINT_RESTORE. `exe` does so without that
    /// capability, but only if the file is the program itself. The third is the path of the mapping
    /// in the process's root directory. The last is the same path in this program's root directory,
    /// for a process that has ended.
    fn open(&self, mapping: &Mapping) -> io::Result<File> {
        if !mapping.has_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let thread = self.thread;
        let range = &mapping.range;
        let path = &*mapping.path;
        let mut paths = vec![format!(
            "/proc/{thread}/map_files/{:x}-{:x}",
            range.start, range.end
        )];
        let program = format!("/proc/{thread}/exe");
        if without_deleted(&proc::link(&program)) == without_deleted(path) {
            paths.push(program);
        }
        paths.push(format!("/proc/{thread}/root{path}"));
        for path in paths {
            let Ok(file) = file::open(Path::new(&path), 0) else {
                continue;
            };
            // Since the mapping was reported, the process may have mapped another file there,
            // executed another program, or replaced the file at the path.
            if !is_another(&file.metadata()?, mapping.file) {
                return Ok(file);
            }
        }
        let file = file::open(Path::new(path), 0)?;
        if file.metadata()?.ino() != mapping.file.inode {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(file)
    }

    /// Opens a file of debug information, in the process's root directory or in this program's.
    fn find(&self, path: &Path) -> Option<Image> {
        let root = format!("/proc/{}/root", self.thread);
        let inside = Path::new(&root).join(path.strip_prefix("/").ok()?);
        let file = file::open(&inside, 0).or_else(|_| file::open(path, 0));
        Image::of(file.ok()?).ok()
    }
}

impl Code for Mapped {
    fn is_mapped(&self, address: u64) -> bool {
        self.mapping(address).is_some()
    }

    fn function(&self, address: u64) -> Option<Function> {
        let (module, in_file) = self.module(address)?;
        let start = module.symbol(in_file).map(|symbol| symbol.range.start);
        let distance = address.wrapping_sub(in_file);
        Some(Function {
            row: module.unwind_row(in_file),
            start: start.map(|start| start.wrapping_add(distance)),
        })
    }

    fn code_before(&self, address: u64, code: &mut [u8]) -> Option<()> {
        let start = address.checked_sub(code.len() as u64)?;
        let mapping = self.mapping(start)?;
        let file = self.open_file(mapping);
        let image = file.image.as_ref()?;
        image.fill(code, mapping.offset_of(start))
    }
}

/// Returns a path without the suffix that /proc appends after the file was removed.
fn without_deleted(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// Returns whether a file has certainly taken the place of a mapped one. On overlayfs and on btrfs,
/// a mapping and its file have different device numbers, even if the file is the mapped one. So if
/// the device numbers differ, nothing is certain, and the result is false.
fn is_another(file: &Metadata, mapped: FileId) -> bool {
    let device = file.dev();
    let device = (libc::major(device), libc::minor(device));
    device == mapped.device && file.ino() != mapped.inode
}

fn read_memory(pid: u32, bytes: &mut [u8], address: u64) -> io::Result<()> {
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(bytes, address)
}
