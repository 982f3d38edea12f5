//! The initramfs of a boot: init, the job, the programs at the paths they have here, and the files of
//! the package under test, which some tests read.

use std::collections::BTreeMap;
use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cpio::newc::{self, ModeFileType};
use fs_err as fs;
use guest_init::{JOB, encode_fields};

use super::{Plan, Run};

/// Variables with these prefixes are passed to the programs.
const PASSED: &[&str] = &["CARGO_", "CRITERION_", "NO_COLOR", "PROPTEST_", "RUST_", "VDSO_TIME_"];

/// Larger files of a package are not sources.
const LARGEST_SOURCE: u64 = 1 << 20;

/// The archive in the format `newc`, without compression. Without programs, the job is to dump.
pub(super) fn archive(run: &Run<'_>, init: &Path) -> Result<Vec<u8>> {
    let mut files = BTreeMap::from([(PathBuf::from("/init"), fs::read(init)?)]);
    let environment = environment(run.plan);
    if let Some(package) = environment.get("CARGO_MANIFEST_DIR") {
        add_sources(&mut files, Path::new(package))?;
    }
    for program in run.programs {
        files.insert((&program.path).into(), fs::read(&program.path)?);
    }
    let mut put = |name: &str, content: String| files.insert(Path::new(JOB).join(name), content.into());
    put("folder", environment.get("CARGO_MANIFEST_DIR").map_or("/", |folder| folder).into());
    put("environment", encode_fields(environment.iter().map(|(name, value)| format!("{name}={value}"))));
    if let Some(seconds) = run.plan.clock {
        put("clock", seconds.to_string());
    }
    if run.programs.is_empty() {
        put("dump", String::new());
    }
    for (number, program) in run.programs.iter().enumerate() {
        put(&number.to_string(), encode_fields([&program.path].into_iter().chain(&program.arguments)));
    }
    write(&files)
}

/// Writes the files, each folder before what is in it.
fn write(files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<Vec<u8>> {
    let mut entries: BTreeMap<&Path, Option<&[u8]>> = BTreeMap::new();
    for (path, content) in files {
        entries.extend(path.ancestors().skip(1).map(|folder| (folder, None)));
        entries.insert(path, Some(content));
    }
    entries.remove(Path::new("/"));
    let mut archive = Vec::new();
    for ((path, content), number) in entries.into_iter().zip(1..) {
        let name = path.to_str().and_then(|path| path.strip_prefix('/'));
        let name = name.with_context(|| format!("{} is not an absolute UTF-8 path", path.display()))?;
        let kind = if content.is_some() { ModeFileType::Regular } else { ModeFileType::Directory };
        let header = newc::Builder::new(name).ino(number).mode(0o755).set_mode_file_type(kind);
        let content = content.unwrap_or_default();
        let mut writer = header.write(&mut archive, content.len() as u32);
        writer.write_all(content)?;
        writer.finish()?;
    }
    newc::trailer(&mut archive)?;
    Ok(archive)
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

/// The variables that the programs get.
fn environment(plan: &Plan) -> BTreeMap<String, String> {
    let inherited = env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        PASSED.iter().any(|prefix| name.starts_with(prefix)).then_some((name, value))
    });
    inherited.chain(plan.environment.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel creates no missing folders, so their entries must come first.
    #[test]
    fn a_folder_comes_before_its_files_and_once() {
        let files = ["/a/b/c", "/a/d"].map(|path| (path.into(), b"hello".to_vec()));
        let archive = write(&files.into()).unwrap();
        let (mut rest, mut found) = (&archive[..], Vec::new());
        while !newc::Reader::new(rest).unwrap().entry().is_trailer() {
            let reader = newc::Reader::new(rest).unwrap();
            let entry = reader.entry();
            found.push(format!("{} {:o} {}", entry.name(), entry.mode(), entry.file_size()));
            rest = reader.finish().unwrap();
        }
        assert_eq!(found, ["a 40755 0", "a/b 40755 0", "a/b/c 100755 5", "a/d 100755 5"]);
        assert!(write(&[("a".into(), Vec::new())].into()).is_err());
    }
}
