//! The initramfs of a boot: init, the job, the programs at the paths they have here, and the files
//! of the package under test, which some tests read.

use std::collections::BTreeMap;
use std::env;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cpio::newc::{self, ModeFileType};
use fs_err as fs;
use nanoserde::SerBin as _;

use super::{Plan, Run};
use crate::protocol::{JOB, Job};

/// Variables with these prefixes are passed to the programs.
const PASSED: &[&str] = &[
    "CARGO_",
    "CRITERION_",
    "NO_COLOR",
    "PROPTEST_",
    "RUST_",
    "VDSO_TIME_",
];

/// Larger files of a package are not sources.
const LARGEST_SOURCE: u64 = 1 << 20;

/// Returns the archive in the format `newc`, without compression.
pub(super) fn archive(run: &Run<'_>, init: &Path) -> Result<Vec<u8>> {
    let mut files = BTreeMap::from([(PathBuf::from("/init"), fs::read(init)?)]);
    add_sources(&mut files, &run.folder)?;
    let mut programs = Vec::new();
    for program in run.programs {
        files.insert((&program.path).into(), fs::read(&program.path)?);
        programs.push([std::slice::from_ref(&program.path), &program.arguments].concat());
    }
    let environment = environment(run.plan);
    let folder = run
        .folder
        .to_str()
        .context("the working folder is not UTF-8")?
        .to_owned();
    let job = Job {
        programs,
        folder,
        environment,
        clock: run.plan.clock,
    };
    files.insert(JOB.into(), job.serialize_bin());
    write(&files)
}

/// Writes the files, each folder before what is in it: the kernel creates no missing folders.
fn write(files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<Vec<u8>> {
    let mut entries: BTreeMap<&Path, Option<&[u8]>> = BTreeMap::new();
    for (path, content) in files {
        entries.extend(path.ancestors().skip(1).map(|folder| (folder, None)));
        entries.insert(path, Some(content));
    }
    entries.remove(Path::new("/"));
    let mut inputs = Vec::new();
    for (path, content) in entries {
        let name = path.to_str().and_then(|path| path.strip_prefix('/'));
        let name =
            name.with_context(|| format!("{} is not an absolute UTF-8 path", path.display()))?;
        let kind = if content.is_some() {
            ModeFileType::Regular
        } else {
            ModeFileType::Directory
        };
        let header = newc::Builder::new(name)
            .mode(0o755)
            .set_mode_file_type(kind);
        inputs.push((header, Cursor::new(content.unwrap_or_default())));
    }
    Ok(cpio::write_cpio(inputs.into_iter(), Vec::new())?)
}

/// Adds the files of a folder, except hidden ones and what cargo built.
fn add_sources(files: &mut BTreeMap<PathBuf, Vec<u8>>, folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if name == "target" || name.to_string_lossy().starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            add_sources(files, &entry.path())?;
        } else if kind.is_file() && entry.metadata()?.len() <= LARGEST_SOURCE {
            files.insert(entry.path(), fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Returns the variables that the programs get.
fn environment(plan: &Plan) -> BTreeMap<String, String> {
    let inherited = env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        PASSED
            .iter()
            .any(|prefix| name.starts_with(prefix))
            .then_some((name, value))
    });
    inherited.chain(plan.environment.iter().cloned()).collect()
}
