//! Files that a hostile process chose.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::iter::repeat_n;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::rc::Rc;

use super::bounded::has_room;

/// Opens a regular file. `flags` can be `O_NOFOLLOW`.
pub(super) fn open(path: &Path, flags: i32) -> io::Result<File> {
    // Opening a device could have an effect, and a pipe could be put here after this check.
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | flags).open(path)
}

/// Reads a file of at most so many bytes, if there is memory for it.
pub(super) fn read(mut file: File, most: u64) -> io::Result<Rc<[u8]>> {
    let size = file.metadata()?.len();
    if size > most || !has_room(size) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes: Rc<[u8]> = repeat_n(0, size as usize).collect();
    file.read_exact(Rc::make_mut(&mut bytes))?;
    Ok(bytes)
}
