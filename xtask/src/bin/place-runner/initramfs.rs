//! What the guest finds: init, the programs where they are here, and the sources of the package under test, which some
//! tests read.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Run;
use crate::cpio::Archive;
use crate::protocol::{TASKS, Task, encode};

/// Variables with these beginnings are the guest's too.
const PASSED: &[&str] = &["CARGO_", "CRITERION_", "NO_COLOR", "PROPTEST_", "RUST_", "VDSO_TIME_"];

/// Sources are no larger; a folder that holds more is not a package's.
const LARGEST_SOURCE: u64 = 1 << 20;

/// The whole archive.
pub(crate) fn archive(init: &str, runs: &[Run], tasks: &[Task]) -> Result<Vec<u8>, String> {
    let mut archive = Archive::new(Vec::new());
    let mut put = |path: &Path, at: &Path| {
        let result = fs::read(path).and_then(|bytes| archive.file(at, &bytes));
        result.map_err(|error| format!("{}: {error}", path.display()))
    };
    put(Path::new(init), Path::new("/init"))?;
    for Run { program, .. } in runs {
        put(Path::new(program), Path::new(program))?;
    }
    if let Ok(package) = env::var("CARGO_MANIFEST_DIR") {
        let mut found = Vec::new();
        sources(Path::new(&package), &mut found).map_err(|error| format!("{package}: {error}"))?;
        for file in found {
            put(&file, &file)?;
        }
    }
    archive.file(Path::new(TASKS), encode(tasks).as_bytes()).map_err(|error| error.to_string())?;
    archive.finish().map_err(|error| error.to_string())
}

/// The files below a folder, without what is built or hidden.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if name == "target" || name.to_string_lossy().starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            sources(&entry.path(), found)?;
        } else if kind.is_file() && entry.metadata()?.len() <= LARGEST_SOURCE {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The working folder and the variables, which are those of this process.
pub(crate) fn environment() -> Vec<Task> {
    let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| "/".into());
    let passed = |name: &str| PASSED.iter().any(|prefix| name.starts_with(prefix));
    let variables = env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        passed(&name).then(|| Task::Variable(format!("{name}={value}")))
    });
    [Task::Folder(folder)].into_iter().chain(variables).collect()
}
