//! The cache of downloads and builds. Each entry is complete or absent.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use fs_err as fs;
use rustix::fs::{FlockOperation, flock};

/// Returns `${XDG_CACHE_HOME:-~/.cache}/vdso-time`.
pub(crate) fn directory() -> Result<PathBuf> {
    if let Some(cache) = absolute("XDG_CACHE_HOME") {
        return Ok(cache.join("vdso-time"));
    }
    let home = absolute("HOME");
    let home =
        home.context("no cache directory: set HOME or XDG_CACHE_HOME to an absolute path")?;
    Ok(home.join(".cache/vdso-time"))
}

/// Returns the path in a variable, if it is absolute.
fn absolute(variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env::var_os(variable)?);
    if path.is_absolute() { Some(path) } else { None }
}

/// Makes sure that the directory `path` exists. If it does not, `build` fills a draft: a directory
/// beside `path`, which is then renamed to `path`. So an interrupted build leaves no incomplete
/// directory at `path`. Other processes wait for the build.
pub(crate) fn build_once(path: &Path, build: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    let _lock = lock(&beside(path, "lock"))?;
    if path.is_dir() {
        return Ok(());
    }
    let draft = beside(path, "draft");
    if draft.is_dir() {
        fs::remove_dir_all(&draft)?;
    }
    fs::create_dir(&draft)?;
    if let Err(error) = build(&draft) {
        // If the draft stays, the next build removes it.
        let _ = fs::remove_dir_all(&draft);
        return Err(error);
    }
    Ok(fs::rename(&draft, path)?)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}.{suffix}", path.display()))
}

/// Locks a file: waits until no other process holds the lock. Closing the file releases it.
pub(crate) fn lock(path: &Path) -> Result<fs::File> {
    let file = fs::File::create(path)?;
    flock(&file, FlockOperation::LockExclusive).context("cannot lock the cache")?;
    Ok(file)
}

/// Returns the paths in a directory, sorted.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
