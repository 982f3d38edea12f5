//! Files with the symbols and the debug information of a stripped file.

use std::env;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Crc;
use lzma_rust2::XzReader;
use object::{Object as _, ObjectSection as _};

use super::clock_function::is_libc;
use super::file::{self, Elf, Image};
use crate::error::Result;
use crate::progress::Progress;

/// The directory in which debug files are installed. gdb looks for them there too.
const DIRECTORY: &str = "/usr/lib/debug";

/// The maximum size of a file that a debug link names. A larger file is not read.
const MOST_OF_LINK: u64 = 2 << 30;

/// The maximum size of the file in `.gnu_debugdata`. A larger file is not used.
const MOST_BYTES: u64 = 64 << 20;

/// The memory that the xz decoder may use, in KiB.
const DECODER: u32 = 1 << 17;

/// The program that downloads files from debuginfod servers.
const DEBUGINFOD: &str = "debuginfod-find";

/// Finds the debug file of a file without `.debug_info`: through its build id, through its debug
/// link, on a debuginfod server, or, last, inside the file. `path` is the path of `file`, and
/// `find` opens a file at a path. Without `downloads` no server is asked. Returns `None` for the
/// vDSO and libc, because a report skips their functions and shows the caller.
pub(super) fn of(
    file: &Elf<'_>,
    path: &Path,
    find: impl Fn(&Path) -> Option<Image>,
    downloads: Option<&Progress>,
) -> Option<Image> {
    let has_own = [".debug_info", ".zdebug_info"]
        .iter()
        .any(|name| file.section_by_name(name).is_some());
    if has_own || !path.is_absolute() || is_libc(path.file_name()?.to_str()?) {
        return None;
    }
    let id = BuildId::of(file);
    if let Some(id) = &id {
        if let Some(found) = by_build_id(id, &find) {
            return Some(found);
        }
    }
    if let Some(found) = by_link(file, path, &find) {
        return Some(found);
    }
    if let (Some(progress), Some(id)) = (downloads, &id) {
        progress.set_download(Some(path));
        let found = downloaded(id);
        progress.set_download(None);
        if found.is_some() {
            return found;
        }
    }
    mini_debug_info(file)
}

fn by_build_id(id: &BuildId, find: impl Fn(&Path) -> Option<Image>) -> Option<Image> {
    let found = find(&id.path())?;
    if !id.is_of(&found) {
        return None;
    }
    Some(found)
}

/// Unpacks `MiniDebugInfo`: an ELF file that contains symbols, compressed with xz.
fn mini_debug_info(file: &Elf<'_>) -> Option<Image> {
    let section = file.section_by_name(".gnu_debugdata")?;
    let packed = section.data().ok()?;
    let xz = XzReader::new_mem_limit(packed, false, DECODER);
    let mut bytes = Vec::new();
    let size = xz.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    if size >= MOST_BYTES as usize {
        return None;
    }
    Some(Image::Bytes(bytes.into()))
}

/// The build id, which a file and its debug file have in common.
struct BuildId(Vec<u8>);

impl BuildId {
    fn of(file: &Elf<'_>) -> Option<Self> {
        let id = build_id(file)?;
        // An id needs two bytes to have a path, because the first byte names a directory, and the
        // others name a file in it.
        if id.len() < 2 {
            return None;
        }
        Some(Self(id.to_vec()))
    }

    fn digits(&self) -> String {
        let digits: Vec<_> = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.concat()
    }

    /// Returns the path at which a distribution installs the debug file.
    fn path(&self) -> PathBuf {
        let digits = self.digits();
        let (first, rest) = digits.split_at(2);
        PathBuf::from(format!("{DIRECTORY}/.build-id/{first}/{rest}.debug"))
    }

    fn is_of(&self, image: &Image) -> bool {
        let ranges = image.ranges();
        match file::elf(&ranges) {
            Some(file) => build_id(&file) == Some(&self.0),
            None => false,
        }
    }
}

/// Returns the content of the note of type 3 (`NT_GNU_BUILD_ID`). This function reads only the
/// section `.note.gnu.build-id`. The crate `object` can find a build id as well, but it searches
/// all note sections. In a malformed file, that search could take very long, because many sections
/// can name the same long list of notes.
///
/// The note consists of three words, the name and the id:
///
/// ```text
/// 4, the size of the name | the size of the id | 3, the type | GNU\0 | the id
/// ```
fn build_id<'a>(file: &Elf<'a>) -> Option<&'a [u8]> {
    let section = file.section_by_name(".note.gnu.build-id")?;
    let note = section.data().ok()?;
    let rest = note.strip_prefix(&4_u32.to_ne_bytes())?;
    let (size, rest) = rest.split_first_chunk()?;
    let rest = rest.strip_prefix(&3_u32.to_ne_bytes())?;
    let id = rest.strip_prefix(b"GNU\0")?;
    let size = u32::from_ne_bytes(*size) as usize;
    id.get(..size)
}

/// Returns an error if no debuginfod server can be asked.
pub(crate) fn check_debuginfod() -> Result<()> {
    if env::var_os("DEBUGINFOD_URLS").is_none_or(|urls| urls.is_empty()) {
        let what = "--debuginfod asks the servers in DEBUGINFOD_URLS, which is not set: set it, and keep it with \
                    `sudo --preserve-env=DEBUGINFOD_URLS`";
        return Err(what.into());
    }
    let mut version = Command::new(DEBUGINFOD);
    let started = version.arg("--version").stdin(Stdio::null()).output();
    let Err(error) = started else {
        return Ok(());
    };
    Err(format!(
        "cannot run {DEBUGINFOD}: {error}: install elfutils (Debian: `apt install debuginfod`)"
    )
    .into())
}

/// Downloads the debug file of a build id from a debuginfod server. Returns `None` if no server has
/// the file, or if it cannot be downloaded.
fn downloaded(id: &BuildId) -> Option<Image> {
    let mut command = Command::new(DEBUGINFOD);
    command.args(["debuginfo", &id.digits()]);
    let output = command.stdin(Stdio::null()).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let path = String::from_utf8(output.stdout).ok()?;
    let file = file::open(Path::new(path.trim_end()), 0).ok()?;
    let image = Image::of(file).ok()?;
    if !id.is_of(&image) {
        return None;
    }
    Some(image)
}

fn by_link(file: &Elf<'_>, path: &Path, find: impl Fn(&Path) -> Option<Image>) -> Option<Image> {
    let Ok(Some((link, sum))) = file.gnu_debuglink() else {
        return None;
    };
    let link = std::str::from_utf8(link).ok()?;
    // A name with slashes would lead to another directory, so only its last component is used.
    let name = Path::new(link).file_name()?;
    let own = path.parent()?;
    let inside = Path::new(DIRECTORY).join(own.strip_prefix("/").unwrap_or(own));
    for directory in [own.to_owned(), own.join(".debug"), inside] {
        let Some(found) = find(&directory.join(name)) else {
            continue;
        };
        if crc(&found) == Some(sum) {
            return Some(found);
        }
    }
    None
}

fn crc(image: &Image) -> Option<u32> {
    let size = image.len();
    if size > MOST_OF_LINK {
        return None;
    }
    let mut crc = Crc::new();
    let mut block = vec![0; 1 << 16];
    for at in (0..size).step_by(block.len()) {
        block.truncate((size - at) as usize);
        image.fill(&mut block, at)?;
        crc.update(&block);
    }
    Some(crc.sum())
}
