//! The initramfs: an archive in the format `newc`, as the kernel's Documentation/driver-api/early-userspace/
//! buffer-format.rst has it. The kernel takes it without compression.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

const MAGIC: &str = "070701";
const TRAILER: &str = "TRAILER!!!";
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

pub(crate) struct Archive<W> {
    to: W,
    /// The names that are in it, without the leading slash.
    names: BTreeSet<String>,
}

impl<W: Write> Archive<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, names: BTreeSet::new() }
    }

    /// Puts a file at an absolute path, with the folders above it; once.
    pub(crate) fn file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let name = path.to_str().and_then(|path| path.strip_prefix('/'));
        let name =
            name.ok_or_else(|| io::Error::other(format!("{} is no path for a guest", path.display())))?;
        for (end, _) in name.match_indices('/') {
            self.entry(&name[..end], FOLDER, &[])?;
        }
        self.entry(name, PROGRAM, bytes)
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry(TRAILER, 0, &[])?;
        Ok(self.to)
    }

    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        if !self.names.insert(name.into()) {
            return Ok(());
        }
        let length = |size: usize| u32::try_from(size).map_err(io::Error::other);
        let number = length(self.names.len())?;
        // ino, mode, uid, gid, nlink, mtime, filesize, device (major, minor), rdev (the same), namesize, check
        let (size, name_size) = (length(bytes.len())?, length(name.len() + 1)?);
        let mut head = String::from(MAGIC);
        for field in [number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0] {
            let _ = write!(head, "{field:08x}"); // a String takes every write
        }
        head.push_str(name);
        head.push('\0');
        self.padded(head.as_bytes())?;
        self.padded(bytes)
    }

    /// Head and contents each end at a multiple of four.
    fn padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.to.write_all(&[0; 3][..bytes.len().wrapping_neg() % 4])
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Archive;

    /// As `cpio -o -H newc` writes it, but for numbers that mean nothing here.
    #[test]
    fn layout() {
        let mut archive = Archive::new(Vec::new());
        archive.file(Path::new("/a/b"), b"hello").unwrap();
        archive.file(Path::new("/a/c"), b"").unwrap();
        let text = String::from_utf8(archive.finish().unwrap()).unwrap();
        let zero = "00000000";
        let entry = |number: u32, mode: &str, size: u32, name: &str, after: &str| {
            let name_size = name.len() + 1;
            let device = zero.repeat(4);
            format!(
                "070701{number:08x}{mode}{zero}{zero}00000001{zero}{size:08x}{device}{name_size:08x}{zero}{name}\0{after}"
            )
        };
        let expected = [
            entry(1, "000041ed", 0, "a", ""),
            entry(2, "000081ed", 5, "a/b", "\0\0hello\0\0\0"),
            entry(3, "000081ed", 0, "a/c", "\0\0"),
            entry(4, zero, 0, "TRAILER!!!", "\0\0\0"),
        ];
        assert_eq!(text, expected.concat());
        assert_eq!(text.len() % 4, 0);
    }

    #[test]
    fn a_relative_path_is_an_error() {
        assert!(Archive::new(Vec::new()).file(Path::new("a"), b"").is_err());
    }
}
