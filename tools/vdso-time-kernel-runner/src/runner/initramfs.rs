//! The initramfs of a boot: init, the job, the programs at their paths on this machine, the files
//! that they may read, and the files of an ordinary system.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Cursor};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cpio::newc::{self, ModeFileType};
use fs_err as fs;
use nanoserde::SerBin as _;

use super::files::{Content, Entries, Entry, Files, pages};
use super::{Plan, Run, step};
use crate::protocol::{BUSYBOX, JOB, Job};

/// Variables with these prefixes are passed to the programs.
const PASSED: &[&str] = &[
    "CARGO_",
    "CRITERION_",
    "NO_COLOR",
    "PROPTEST_",
    "RUST_",
    "VDSO_TIME_",
];

/// The environment variables that every Linux system sets.
const USUAL: &[(&str, &str)] = &[
    ("HOME", "/root"),
    ("LOGNAME", "root"),
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("SHELL", "/bin/sh"),
    ("USER", "root"),
];

/// The files that a C library reads to resolve `localhost` and the names of users and groups.
const CONFIGURATION: &[(&str, &str)] = &[
    ("/etc/group", "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"),
    ("/etc/hostname", "guest\n"),
    (
        "/etc/hosts",
        "127.0.0.1 localhost guest\n::1 localhost ip6-localhost ip6-loopback\n",
    ),
    (
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\n",
    ),
    (
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    ),
];

/// The initramfs, and the memory that its files need in the guest.
pub(super) struct Initramfs {
    /// The files in the format `newc`, without compression.
    pub(super) archive: Vec<u8>,
    /// The memory that the files take in the guest, in bytes. Each file takes whole pages.
    pub(super) unpacked: u64,
}

/// Creates the initramfs of a run.
pub(super) fn create(run: &Run<'_>, init: &Path) -> Result<Initramfs> {
    let mut paths = Vec::new();
    let mut programs = Vec::new();
    for program in run.programs {
        paths.push(PathBuf::from(&program.path));
        programs.push([std::slice::from_ref(&program.path), &program.arguments].concat());
    }
    let mut files = Files::collect(&paths, &run.directory)?;
    for (path, text) in CONFIGURATION {
        files.add(path, Entry::text(*text));
    }
    files.add("/init", Entry::program(fs::read(init)?));
    if let Some(busybox) = &run.plan.busybox {
        files.add(BUSYBOX, Entry::program(fs::read(busybox)?));
    }
    let directory = run.directory.to_str();
    let job = Job {
        programs,
        directory: directory
            .context("the working directory is not UTF-8")?
            .to_owned(),
        environment: environment(run.plan),
        clock: run.plan.clock,
    };
    files.add(JOB, Entry::text(job.serialize_bin()));
    write(files.entries, run.plan.page)
}

/// Writes the entries. Each directory comes before its contents, because the kernel does not create
/// missing directories.
fn write(mut entries: Entries, page: u64) -> Result<Initramfs> {
    let paths: Vec<PathBuf> = entries.keys().cloned().collect();
    for path in paths {
        for directory in path.ancestors().skip(1) {
            if !entries.contains_key(directory) {
                entries.insert(directory.into(), Entry::directory(directory));
            }
        }
    }
    entries.remove(Path::new("/"));
    let mut inputs = Vec::new();
    let mut unpacked = 0;
    for (path, entry) in entries {
        let Some(name) = path.to_str() else {
            let name = path.display();
            step(&format!(
                "{name}: the name is not UTF-8, so the file is not in the guest"
            ));
            continue;
        };
        let name = name.trim_start_matches('/');
        let (kind, bytes) = match entry.content {
            Content::Directory => (ModeFileType::Directory, Vec::new()),
            Content::Link(target) => (ModeFileType::Symlink, target.as_os_str().as_bytes().into()),
            Content::Text(text) => (ModeFileType::Regular, text),
            Content::Copy => match fs::read(&path) {
                Ok(bytes) => (ModeFileType::Regular, bytes),
                // The file was temporary, and is gone.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    step(&format!("{error}; it is not in the guest"));
                    continue;
                }
            },
        };
        unpacked += pages(bytes.len() as u64, page);
        let header = newc::Builder::new(name)
            .mode(entry.mode)
            .mtime(entry.modified)
            .set_mode_file_type(kind);
        inputs.push((header, Cursor::new(bytes)));
    }
    Ok(Initramfs {
        archive: cpio::write_cpio(inputs.into_iter(), Vec::new())?,
        unpacked,
    })
}

/// Returns the environment of the programs.
fn environment(plan: &Plan) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for (name, value) in USUAL {
        variables.insert((*name).to_owned(), (*value).to_owned());
    }
    for (name, value) in env::vars_os() {
        let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else {
            continue;
        };
        if PASSED.iter().any(|prefix| name.starts_with(prefix)) {
            variables.insert(name, value);
        }
    }
    variables.extend(plan.environment.iter().cloned());
    variables
}
