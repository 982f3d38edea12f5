//! Files with the symbols and the debug information of a stripped one.

use std::env;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use flate2::Crc;
use lzma_rust2::XzReader;
use object::{File, Object as _, ObjectSection as _};

use super::file;
use crate::{Error, Result};

/// The folder of debug files, as gdb has it.
const FOLDER: &str = "/usr/lib/debug";

/// A larger symbol table in `.gnu_debugdata` is not read, and the decoder's memory in KiB.
const MOST_BYTES: u64 = 64 << 20;
const DECODER: u32 = 1 << 17;

/// The program that asks debuginfod servers.
const DEBUGINFOD: &str = "debuginfod-find";

/// The debug file of a file without `.debug_info`: by its build id, by its link, of a debuginfod
/// server if that is asked for, or inside. `find` reads a file; `path` is where the file itself is.
pub(super) fn of(
    file: &File<'_>,
    path: &Path,
    find: impl Fn(&Path) -> Option<Rc<[u8]>>,
    asks_debuginfod: bool,
) -> Option<Rc<[u8]>> {
    if file.section_by_name(".debug_info").is_some() || file.section_by_name(".zdebug_info").is_some() {
        return None;
    }
    let id = build_id(file).filter(|id| id.len() > 1);
    let is_same = |found: &Rc<[u8]>| File::parse(&**found).is_ok_and(|found| build_id(&found) == id);
    let digits = id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat());
    let by_id = digits.as_ref().and_then(|digits| {
        find(&PathBuf::from(format!("{FOLDER}/.build-id/{}/{}.debug", &digits[..2], &digits[2..])))
    });
    let downloaded = || downloaded(digits.as_ref().filter(|_| asks_debuginfod)?).filter(is_same);
    by_id.filter(is_same).or_else(|| by_link(file, path, &find)).or_else(downloaded).or_else(|| {
        // MiniDebugInfo: a file of symbols, compressed by xz.
        let section = file.section_by_name(".gnu_debugdata")?;
        let mut bytes = Vec::new();
        let xz = XzReader::new_mem_limit(section.data().ok()?, false, DECODER);
        let size = xz.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        (size < MOST_BYTES as usize).then(|| bytes.into())
    })
}

/// The content of a note of GNU's type 3. `object` would read any number of notes again and again.
fn build_id<'a>(file: &File<'a>) -> Option<&'a [u8]> {
    let note = file.section_by_name(".note.gnu.build-id")?.data().ok()?;
    let (size, note) = note.strip_prefix(&4_u32.to_ne_bytes())?.split_first_chunk()?;
    let id = note.strip_prefix(&3_u32.to_ne_bytes())?.strip_prefix(b"GNU\0")?;
    id.get(..u32::from_ne_bytes(*size) as usize)
}

/// Fails if no debuginfod server can be asked.
pub(crate) fn check_debuginfod() -> Result<()> {
    if env::var_os("DEBUGINFOD_URLS").is_none_or(|urls| urls.is_empty()) {
        return Err(Error::Options(
            "--debuginfod asks the servers in DEBUGINFOD_URLS, which is not set: set it, and keep it with `sudo \
             --preserve-env=DEBUGINFOD_URLS`"
                .into(),
        ));
    }
    let mut version = Command::new(DEBUGINFOD);
    let started = version.arg("--version").stdin(Stdio::null()).output();
    started.map(drop).map_err(|error| {
        Error::Unsupported(format!(
            "cannot run {DEBUGINFOD}: {error}: install elfutils (Debian: `apt install debuginfod`)"
        ))
    })
}

/// The debug file of a build id, from a debuginfod server. A server that has none is no error.
fn downloaded(id: &str) -> Option<Rc<[u8]>> {
    let output = Command::new(DEBUGINFOD).args(["debuginfo", id]).stdin(Stdio::null()).output().ok()?;
    let path = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    file::read(file::open(Path::new(path.trim_end()), 0).ok()?, u64::MAX).ok()
}

fn by_link(file: &File<'_>, path: &Path, find: impl Fn(&Path) -> Option<Rc<[u8]>>) -> Option<Rc<[u8]>> {
    let (name, sum) = file.gnu_debuglink().ok()??;
    // A name with slashes would lead elsewhere.
    let name = Path::new(std::str::from_utf8(name).ok()?).file_name()?;
    let folder = path.parent()?;
    let inside = Path::new(FOLDER).join(folder.strip_prefix("/").unwrap_or(folder));
    let folders = [folder.to_owned(), folder.join(".debug"), inside];
    folders.iter().filter_map(|folder| find(&folder.join(name))).find(|found| {
        let mut crc = Crc::new();
        crc.update(found);
        crc.sum() == sum
    })
}
