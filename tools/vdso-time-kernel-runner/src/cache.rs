//! The cache folder. What is put there is complete or absent.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use fs_err as fs;
use rustix::fs::{FlockOperation, flock};

/// Returns `${XDG_CACHE_HOME:-~/.cache}/vdso-time`.
pub fn folder() -> Result<PathBuf> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .context("no cache folder: set HOME or XDG_CACHE_HOME to an absolute path")?;
    Ok(base.join("vdso-time"))
}

/// Makes sure that the folder `path` exists. If it does not, `build` fills a draft, which is then
/// renamed: an interrupted build leaves no incomplete folder. Other processes wait for the build.
pub fn build_once(path: &Path, build: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let beside = |suffix: &str| PathBuf::from(format!("{}.{suffix}", path.display()));
    let draft = beside("draft");
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    let _lock = lock(&beside("lock"))?;
    if path.is_dir() {
        return Ok(());
    }
    if draft.is_dir() {
        fs::remove_dir_all(&draft)?;
    }
    fs::create_dir(&draft)?;
    let result = build(&draft).and_then(|()| Ok(fs::rename(&draft, path)?));
    if result.is_err() {
        fs::remove_dir_all(&draft)?;
    }
    result
}

/// Waits until no other process has this file open by this function.
pub fn lock(path: &Path) -> Result<fs::File> {
    let file = fs::File::create(path)?;
    flock(&file, FlockOperation::LockExclusive).context("cannot lock the cache")?;
    Ok(file)
}

/// Returns the paths in a folder, sorted.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
