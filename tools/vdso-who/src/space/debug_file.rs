//! Files with the symbols and the debug information of a stripped one.

use std::env;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Crc;
use lzma_rust2::XzReader;
use object::{Object as _, ObjectSection as _};

use super::clock_function::is_libc;
use super::file::{self, Elf, Image};
use crate::Result;
use crate::progress::Progress;

/// The folder of debug files, as gdb has it.
const FOLDER: &str = "/usr/lib/debug";

/// A larger file of a link is not read.
const MOST_OF_LINK: u64 = 2 << 30;

/// A larger symbol table in `.gnu_debugdata` is not read, and the decoder's memory in KiB.
const MOST_BYTES: u64 = 64 << 20;
const DECODER: u32 = 1 << 17;

/// The program that asks debuginfod servers.
const DEBUGINFOD: &str = "debuginfod-find";

/// Finds the debug file of a file without `.debug_info`: by its build id, by its link, inside it,
/// or on a debuginfod server. `find` opens a file; `path` is where the file itself is. Without
/// `downloads` no server is asked. The vDSO and libc have none: their functions are skipped.
pub(super) fn of(
    file: &Elf<'_>,
    path: &Path,
    find: impl Fn(&Path) -> Option<Image>,
    downloads: Option<&Progress>,
) -> Option<Image> {
    let has_own = file
        .section_by_name(".debug_info")
        .or_else(|| file.section_by_name(".zdebug_info"));
    if has_own.is_some() || !path.is_absolute() || is_libc(path.file_name()?.to_str()?) {
        return None;
    }
    let id = build_id(file).filter(|id| id.len() > 1);
    let is_same = |found: &Image| {
        let ranges = found.ranges();
        Elf::parse(&ranges).is_ok_and(|found| build_id(&found) == id)
    };
    let digits = id.map(|id| {
        id.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .concat()
    });
    let by_id = digits.as_ref().and_then(|digits| {
        find(&PathBuf::from(format!(
            "{FOLDER}/.build-id/{}/{}.debug",
            &digits[..2],
            &digits[2..]
        )))
    });
    let downloaded = || {
        let (progress, digits) = (downloads?, digits.as_ref()?);
        progress.set_download(Some(path));
        let found = downloaded(digits).filter(is_same);
        progress.set_download(None);
        found
    };
    by_id
        .filter(is_same)
        .or_else(|| by_link(file, path, &find))
        .or_else(downloaded)
        .or_else(|| {
            // MiniDebugInfo: a file of symbols, compressed by xz.
            let section = file.section_by_name(".gnu_debugdata")?;
            let mut bytes = Vec::new();
            let xz = XzReader::new_mem_limit(section.data().ok()?, false, DECODER);
            let size = xz.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
            (size < MOST_BYTES as usize).then(|| Image::Bytes(bytes.into()))
        })
}

/// Returns the content of a note of GNU's type 3. `object` would read any number of notes again and
/// again.
fn build_id<'a>(file: &Elf<'a>) -> Option<&'a [u8]> {
    let note = file.section_by_name(".note.gnu.build-id")?.data().ok()?;
    let (size, note) = note
        .strip_prefix(&4_u32.to_ne_bytes())?
        .split_first_chunk()?;
    let id = note
        .strip_prefix(&3_u32.to_ne_bytes())?
        .strip_prefix(b"GNU\0")?;
    id.get(..u32::from_ne_bytes(*size) as usize)
}

/// Fails if no debuginfod server can be asked.
pub(crate) fn check_debuginfod() -> Result<()> {
    if env::var_os("DEBUGINFOD_URLS").is_none_or(|urls| urls.is_empty()) {
        let what = "--debuginfod asks the servers in DEBUGINFOD_URLS, which is not set: set it, and keep it with \
                    `sudo --preserve-env=DEBUGINFOD_URLS`";
        return Err(what.into());
    }
    let mut version = Command::new(DEBUGINFOD);
    let started = version.arg("--version").stdin(Stdio::null()).output();
    started.map(drop).map_err(|error| {
        format!(
            "cannot run {DEBUGINFOD}: {error}: install elfutils (Debian: `apt install debuginfod`)"
        )
        .into()
    })
}

/// Downloads the debug file of a build id from a debuginfod server. A server that has none is no
/// error.
fn downloaded(id: &str) -> Option<Image> {
    let output = Command::new(DEBUGINFOD)
        .args(["debuginfo", id])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout)
        .ok()
        .filter(|_| output.status.success())?;
    Some(Image::File(
        file::open(Path::new(path.trim_end()), 0).ok()?.into(),
    ))
}

fn by_link(file: &Elf<'_>, path: &Path, find: impl Fn(&Path) -> Option<Image>) -> Option<Image> {
    let (name, sum) = file.gnu_debuglink().ok()??;
    // A name with slashes would lead elsewhere.
    let name = Path::new(std::str::from_utf8(name).ok()?).file_name()?;
    let folder = path.parent()?;
    let inside = Path::new(FOLDER).join(folder.strip_prefix("/").unwrap_or(folder));
    let folders = [folder.to_owned(), folder.join(".debug"), inside];
    folders
        .iter()
        .filter_map(|folder| find(&folder.join(name)))
        .find(|found| crc(found) == Some(sum))
}

fn crc(image: &Image) -> Option<u32> {
    let size = Some(image.len()).filter(|size| *size <= MOST_OF_LINK)?;
    let (mut crc, mut block) = (Crc::new(), vec![0; 1 << 16]);
    for at in (0..size).step_by(block.len()) {
        block.truncate((size - at) as usize);
        image.fill(&mut block, at)?;
        crc.update(&block);
    }
    Some(crc.sum())
}
