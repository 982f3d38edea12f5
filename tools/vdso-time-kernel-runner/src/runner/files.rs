//! The files of a guest: the programs, and a copy of the package under test.
//!
//! A test can read any file of its package, and does not declare which. So a guest has all of them,
//! including links, dot files and empty directories, with their modes and times. Only `.git` and
//! the files that cargo built stay out. If a guest cannot hold the whole package, the largest files
//! stay out as well. Some tests also read files beside the package, which [`named`](super::named)
//! finds.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use fs_err as fs;

use super::{named, step};

/// The maximum size of all files of a guest together, in bytes. The size of each file is rounded up
/// to a multiple of [`BLOCK`].
///
/// While a guest boots, it needs three times the memory of its files (`memory` in boot.rs), and the
/// board of `+notimer` has at most 1024 MiB. The other machines could hold more: 380 MiB with a
/// kernel for i386, which copies the archive within its lower 887 MiB, and 475 MiB with the others
/// that were tried. One limit for all of them is easier to remember.
pub(super) const MOST: u64 = 224 << 20;

/// The least memory that a file takes, which is one page of most kernels. A guest whose kernel has
/// larger pages gets more memory.
pub(super) const BLOCK: u64 = 4096;

/// The maximum number of bytes in a directory beside the package.
const MOST_BESIDE: u64 = 64 << 20;

/// The maximum number of entries below a directory. A home directory has more, but a package does
/// not.
const MOST_ENTRIES: usize = 100_000;

/// What is at a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Directory,
    /// A symbolic link, with its text.
    Link(PathBuf),
    /// A copy of the file at the same path of this machine.
    Copy,
    Text(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) content: Content,
    /// The permissions, without the type.
    pub(super) mode: u32,
    /// The seconds since the Epoch.
    pub(super) modified: u32,
    size: u64,
}

impl Entry {
    /// Creates the entry of a file with this text.
    pub(super) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self {
            content: Content::Text(text.into()),
            mode: 0o644,
            modified: 0,
            size: 0,
        }
    }

    /// Creates the entry of a program with these bytes.
    pub(super) fn program(bytes: Vec<u8>) -> Self {
        Self {
            mode: 0o755,
            ..Self::text(bytes)
        }
    }

    /// Creates the entry of a directory. If this machine has the directory, its mode is kept: /tmp
    /// is for every user, and ~/.ssh is not.
    pub(super) fn directory(path: &Path) -> Self {
        let mut mode = 0o755;
        if let Ok(metadata) = fs::metadata(path) {
            mode = metadata.mode() & 0o7777;
        }
        Self {
            content: Content::Directory,
            mode,
            ..Self::text("")
        }
    }

    /// Reads what is at the path. Returns `None` for a socket, a pipe or a device.
    fn read(path: &Path, metadata: &Metadata) -> Result<Option<Self>> {
        let content = if metadata.is_dir() {
            Content::Directory
        } else if metadata.is_symlink() {
            Content::Link(fs::read_link(path)?)
        } else if metadata.is_file() {
            Content::Copy
        } else {
            return Ok(None);
        };
        Ok(Some(Self {
            content,
            mode: metadata.mode() & 0o7777,
            modified: u32::try_from(metadata.mtime()).unwrap_or(0),
            size: metadata.len(),
        }))
    }
}

pub(super) type Entries = BTreeMap<PathBuf, Entry>;

/// Returns how much memory an entry with this many bytes takes: whole pages, each of `page` bytes.
/// A directory, a link and an empty file count as one page, because the kernel needs memory to
/// describe them.
pub(super) fn pages(bytes: u64, page: u64) -> u64 {
    bytes.max(1).next_multiple_of(page)
}

/// The files of a guest, by their absolute paths.
pub(super) struct Files {
    pub(super) entries: Entries,
    /// The directories into which cargo built the programs. They are not part of the package.
    built: Vec<PathBuf>,
}

impl Files {
    /// Collects the package, the programs, and the files that the programs name.
    pub(super) fn collect(programs: &[PathBuf], package: &Path) -> Result<Self> {
        let mut files = Self {
            entries: Entries::new(),
            built: programs.iter().filter_map(|path| profile(path)).collect(),
        };
        for program in programs {
            files.add_file(program)?;
        }
        for program in own_programs(package, &files.built) {
            files.add_file(&program)?;
        }
        let of_package = files.add_package(package)?;
        for program in programs {
            for path in named::paths(&fs::read(program)?, program, package) {
                files.add_beside(&path)?;
            }
        }
        files.leave_out_largest(of_package, MOST)?;
        Ok(files)
    }

    /// Adds an entry that need not exist on this machine, such as init.
    pub(super) fn add(&mut self, path: &str, entry: Entry) {
        self.entries.insert(path.into(), entry);
    }

    /// Adds the file at a path. If the path is a link, adds the file to which it leads.
    pub(super) fn add_file(&mut self, path: &Path) -> Result<()> {
        let entry = Entry::read(path, &fs::metadata(path)?)?;
        if let Some(entry) = entry {
            self.entries.insert(path.into(), entry);
        }
        Ok(())
    }

    /// Adds the package, and what its links lead to. Returns the paths of the package's files
    /// except the programs, which have been added before.
    fn add_package(&mut self, package: &Path) -> Result<Vec<PathBuf>> {
        let (found, is_complete) = self.walk(package, u64::MAX)?;
        if !is_complete {
            step(&format!(
                "{} has more than {MOST_ENTRIES} files; the others are not in the guest",
                package.display()
            ));
        }
        let mut files = Vec::new();
        let mut links = Vec::new();
        for (path, entry) in found {
            if self.entries.contains_key(&path) {
                continue;
            }
            match entry.content {
                Content::Copy => files.push(path.clone()),
                Content::Link(_) => links.push(path.clone()),
                Content::Directory | Content::Text(_) => {}
            }
            self.entries.insert(path, entry);
        }
        for link in links {
            // If the link leads nowhere, there is nothing to add: it leads nowhere in the guest as
            // well.
            if let Ok(target) = fs::canonicalize(&link) {
                self.add_beside(&target)?;
            }
        }
        Ok(files)
    }

    /// Removes the largest of the candidates until all files together have at most `most` bytes.
    fn leave_out_largest(&mut self, mut candidates: Vec<PathBuf>, most: u64) -> Result<()> {
        let mut bytes = 0;
        for entry in self.entries.values() {
            bytes += pages(entry.size, BLOCK);
        }
        candidates.sort_by_key(|path| self.entries[path].size);
        let mut left_out = Vec::new();
        while bytes > most {
            let Some(path) = candidates.pop() else {
                return self.too_large(bytes, most);
            };
            if let Some(entry) = self.entries.remove(&path) {
                bytes -= pages(entry.size, BLOCK);
            }
            left_out.push(path);
        }
        if !left_out.is_empty() {
            step(&format!(
                "a guest holds {} MiB of files; left out of the package: {}",
                most >> 20,
                largest_and_others(&left_out)
            ));
        }
        Ok(())
    }

    /// Returns the error for files that the guest needs but cannot hold.
    fn too_large(&self, bytes: u64, most: u64) -> Result<()> {
        let largest = self.entries.iter().max_by_key(|(_, entry)| entry.size);
        let (path, entry) = largest.context("there are files")?;
        bail!(
            "a guest holds {} MiB of files, but the programs and the files beside the package have \
             {} MiB, of which {} has {}; run fewer programs at a time, or smaller ones",
            most >> 20,
            bytes.div_ceil(1 << 20),
            path.display(),
            entry.size >> 20
        )
    }

    /// Adds a file or a directory outside the package, unless it is there already or too large.
    fn add_beside(&mut self, path: &Path) -> Result<()> {
        if self.entries.contains_key(path) {
            return Ok(());
        }
        let (found, is_complete) = self.walk(path, MOST_BESIDE)?;
        if is_complete {
            self.entries.extend(found);
        } else {
            step(&format!(
                "{} has more than {} MiB or {MOST_ENTRIES} files; it is not in the guest",
                path.display(),
                MOST_BESIDE >> 20
            ));
        }
        Ok(())
    }

    /// Returns the entries at and below a path, and whether the search was complete. The search
    /// stops if there are more than [`MOST_ENTRIES`] entries or more than `most` bytes.
    fn walk(&self, path: &Path, most: u64) -> Result<(Entries, bool)> {
        let mut found = Entries::new();
        let mut bytes = 0;
        let mut next = vec![path.to_path_buf()];
        while let Some(path) = next.pop() {
            if found.len() == MOST_ENTRIES || bytes > most {
                return Ok((found, false));
            }
            // The file may have been temporary, and may be gone by now.
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            let Some(entry) = Entry::read(&path, &metadata)? else {
                continue;
            };
            if entry.content == Content::Directory {
                if self.is_built(&path) {
                    continue;
                }
                next.extend(children(&path));
            } else {
                bytes += entry.size;
            }
            found.insert(path, entry);
        }
        Ok((found, bytes <= most))
    }

    /// Returns whether cargo created this directory. The name `target` proves nothing, because some
    /// repositories contain a directory of that name. Cargo's file CACHEDIR.TAG proves it, but a
    /// target directory that CI restored from a cache may lack that file. For such a directory,
    /// this function recognises the directory of each profile, such as target/debug, by its
    /// subdirectories `.fingerprint` and `deps`.
    fn is_built(&self, directory: &Path) -> bool {
        if self.built.iter().any(|built| built == directory) {
            return true;
        }
        if directory.join(".fingerprint").is_dir() && directory.join("deps").is_dir() {
            return true;
        }
        let tag = fs::read_to_string(directory.join("CACHEDIR.TAG"));
        tag.is_ok_and(|text| text.contains("created by cargo"))
    }
}

/// Returns the first of these paths, and how many others there are.
fn largest_and_others(paths: &[PathBuf]) -> String {
    match paths {
        [] => String::new(),
        [largest] => largest.display().to_string(),
        [largest, _] => format!("{} and 1 other file", largest.display()),
        [largest, others @ ..] => {
            format!("{} and {} other files", largest.display(), others.len())
        }
    }
}

/// Returns the paths in a directory except `.git`, or none if the directory cannot be read.
fn children(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let Ok(entries) = fs::read_dir(directory) else {
        return paths;
    };
    for entry in entries.flatten() {
        if entry.file_name() != ".git" {
            paths.push(entry.path());
        }
    }
    paths
}

/// Returns cargo's directory for the program's profile: `target/debug` for
/// `target/debug/deps/program-0123`.
fn profile(program: &Path) -> Option<PathBuf> {
    let directory = program.parent()?;
    if directory.file_name() == Some(OsStr::new("deps")) {
        return Some(directory.parent()?.to_path_buf());
    }
    None
}

/// Returns the programs of the package that cargo built into these directories. A test finds them
/// through `CARGO_BIN_EXE_NAME`, or in the parent of its own directory.
fn own_programs(package: &Path, built: &[PathBuf]) -> Vec<PathBuf> {
    let names = crate::workspace::programs(package);
    let mut programs = Vec::new();
    for directory in built {
        for name in &names {
            let program = directory.join(name);
            if program.is_file() {
                programs.push(program);
            }
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// A directory of one test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("files-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir_all(&directory).unwrap();
            Self(directory)
        }

        fn write(&self, path: &str, text: &str) -> PathBuf {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        /// Collects the package `package`. Returns the paths below this directory.
        fn collect(&self) -> (Files, Vec<String>) {
            let files = Files::collect(&[], &self.0.join("package")).unwrap();
            let mut paths = Vec::new();
            for path in files.entries.keys() {
                let path = path.strip_prefix(&self.0).unwrap();
                paths.push(path.display().to_string());
            }
            (files, paths)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_package_is_copied_without_git_and_without_what_cargo_built() {
        let scratch = Scratch::new("package");
        let tag = "# This file is a cache directory tag created by cargo.";
        scratch.write("package/target/CACHEDIR.TAG", tag);
        scratch.write("package/target/debug/built", "");
        // A restored cache without the tag.
        scratch.write("package/restored/.fingerprint/crate/dep", "");
        scratch.write("package/restored/deps/built", "");
        scratch.write("package/.git/HEAD", "");
        scratch.write("package/sub/.git", "gitdir: elsewhere");
        scratch.write("package/.dot/file", "");
        scratch.write("package/sub/target/tracked", "");
        fs::create_dir(scratch.0.join("package/empty")).unwrap();
        let paths = [
            "package",
            "package/.dot",
            "package/.dot/file",
            "package/empty",
            "package/sub",
            "package/sub/target",
            "package/sub/target/tracked",
        ];
        assert_eq!(scratch.collect().1, paths);
    }

    #[test]
    fn a_file_keeps_its_mode_and_its_time() {
        let scratch = Scratch::new("mode");
        let path = scratch.write("package/file", "text");
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_permissions(PermissionsExt::from_mode(0o640))
            .unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_007))
            .unwrap();
        let (files, _) = scratch.collect();
        let entry = Entry {
            content: Content::Copy,
            mode: 0o640,
            modified: 1_000_000_007,
            size: 4,
        };
        assert_eq!(files.entries[&path], entry);
    }

    #[test]
    fn a_link_stays_a_link_and_what_it_leads_to_is_copied() {
        let scratch = Scratch::new("link");
        scratch.write("licence", "");
        scratch.write("unrelated", "");
        scratch.write("package/file", "");
        let link = scratch.0.join("package/link");
        symlink("../licence", &link).unwrap();
        symlink("nowhere", scratch.0.join("package/dangling")).unwrap();
        let (files, paths) = scratch.collect();
        let content = &files.entries[&link].content;
        assert_eq!(*content, Content::Link("../licence".into()));
        let copied = [
            "licence",
            "package",
            "package/dangling",
            "package/file",
            "package/link",
        ];
        assert_eq!(paths, copied);
    }

    #[test]
    fn the_largest_files_stay_out_of_a_package_that_is_too_large() {
        let scratch = Scratch::new("large");
        let large = scratch.write("package/large", &"l".repeat(2 * BLOCK as usize + 1));
        let small = scratch.write("package/small", "1");
        let middle = scratch.write("package/middle", &"m".repeat(BLOCK as usize + 1));
        let (mut files, _) = scratch.collect();
        let count = files.entries.len();
        // A directory counts as one block, and a file's last, partial block counts as a whole one.
        // The sum adds the blocks of the directory, of `large`, of `small` and of `middle`.
        let blocks = 1 + 3 + 1 + 2;
        let of_package = vec![large.clone(), small, middle];
        files
            .leave_out_largest(of_package.clone(), blocks * BLOCK)
            .unwrap();
        assert_eq!(files.entries.len(), count);
        files
            .leave_out_largest(of_package, blocks * BLOCK - 1)
            .unwrap();
        assert_eq!(files.entries.len(), count - 1);
        assert!(!files.entries.contains_key(&large));
    }

    #[test]
    fn the_largest_file_is_named_and_the_others_are_counted() {
        let paths = ["/a", "/b", "/c"].map(PathBuf::from);
        assert_eq!(largest_and_others(&paths[..1]), "/a");
        assert_eq!(largest_and_others(&paths[..2]), "/a and 1 other file");
        assert_eq!(largest_and_others(&paths), "/a and 2 other files");
    }

    #[test]
    fn a_directory_beside_the_package_that_is_too_large_stays_out() {
        let scratch = Scratch::new("beside");
        scratch.write("package/file", "");
        scratch.write("beside/a", "123");
        scratch.write("beside/b", "456");
        let (files, _) = scratch.collect();
        let beside = scratch.0.join("beside");
        assert!(files.walk(&beside, 6).unwrap().1);
        assert!(!files.walk(&beside, 5).unwrap().1);
    }
}
