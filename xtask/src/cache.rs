//! The cache folder, and how something is put there whole or not at all.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// `${XDG_CACHE_HOME:-~/.cache}/vdso-time`.
pub(crate) fn folder() -> Result<PathBuf, String> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .ok_or("no cache folder: set HOME or XDG_CACHE_HOME to an absolute path")?;
    Ok(base.join("vdso-time"))
}

/// Makes sure that the folder `path` exists, filled by `build` the first time.
///
/// The work is done in a draft beside it, and renamed when complete: an interrupted run leaves
/// nothing that a later one would take for the whole.
pub(crate) fn build_once(path: &Path, build: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    if path.is_dir() {
        return Ok(());
    }
    remove_abandoned_drafts(path);
    let draft = draft_name(path, process::id());
    create(&draft)?;
    let result = build(&draft).and_then(|()| match fs::rename(&draft, path) {
        // Another process was faster; its work is as good as ours.
        Err(_) if path.is_dir() => Ok(()),
        renamed => renamed.map_err(|error| at(path, &error)),
    });
    if draft.is_dir() {
        let removed = fs::remove_dir_all(&draft).map_err(|error| at(&draft, &error));
        return result.and(removed);
    }
    result
}

pub(crate) fn create(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| at(folder, &error))
}

pub(crate) fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| at(file, &error))
}

pub(crate) fn remove(folder: &Path) -> Result<(), String> {
    fs::remove_dir_all(folder).map_err(|error| at(folder, &error))
}

/// The paths in `folder`, sorted.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| at(folder, &error))? {
        paths.push(entry.map_err(|error| at(folder, &error))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// An error of the file system, with the path it is about.
pub(crate) fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn draft_name(path: &Path, process: impl std::fmt::Display) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".draft-{process}"));
    path.with_file_name(name)
}

/// Clears what interrupted runs left: drafts whose process is no more. A draft that cannot be
/// judged or removed is only wasted space, so errors are none here.
fn remove_abandoned_drafts(path: &Path) {
    let prefix = draft_name(path, "");
    let siblings = path.parent().and_then(|parent| entries(parent).ok());
    for sibling in siblings.unwrap_or_default() {
        let name = sibling.to_string_lossy();
        let process = name.strip_prefix(&*prefix.to_string_lossy());
        if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_dir_all(&sibling);
        }
    }
}
