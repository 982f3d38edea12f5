//! `cargo xtask seeded-bugs`: puts each bug of `fuzz/bugs` into a copy of the tree, and demands that it is found: by a fuzz target
//! that starts from nothing, or, if asked for, by the properties too. Without a bug nothing may be found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::fuzz::{self, TARGETS};
use crate::process::{output, stdout, step};
use crate::{Error, cache, workspace};

/// After so many runs of each target a bug counts as not found. The seed is fixed: each time the same runs are made.
const LIMITS: &[&str] =
    &["-runs=3000000", "-seed=1", "-timeout=10", "-print_final_stats=1", "-artifact_prefix=../"];

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let (properties, names) = match arguments {
        [option, names @ ..] if option == "--properties" => (true, names),
        names => (false, names),
    };
    let root = workspace::root();
    let mut patches = cache::entries(&root.join("fuzz/bugs"))?;
    if !names.is_empty() {
        patches
            .retain(|patch| names.iter().any(|name| patch.file_stem().is_some_and(|stem| stem == &**name)));
        if patches.len() != names.len() {
            return Err(Error::Usage("no such bug in fuzz/bugs".into()));
        }
    }
    let tree = Tree::copy_of(root)?;
    tree.restore()?;
    if let Some(complaint) = tree.fuzz()? {
        return Err(Error::Failed(format!("without a bug something is found: {complaint}")));
    }
    let mut missed = Vec::new();
    for patch in patches {
        let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        tree.restore()?;
        tree.spoil(&patch)?;
        let mut finds = vec![tree.fuzz()?];
        if properties {
            finds.push(tree.test_properties()?);
        }
        println!("{name}");
        for find in &finds {
            println!("    {}", find.as_ref().map_or("NOT FOUND", |find| find));
        }
        if finds.contains(&None) {
            missed.push(name);
        }
    }
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Error::Failed(format!("not found: {}", missed.join(", "))))
}

/// A copy of the tree.
struct Tree {
    original: PathBuf,
    folder: PathBuf,
    /// The parts of the tree, relative to it.
    files: Vec<PathBuf>,
}

impl Tree {
    fn copy_of(original: PathBuf) -> Result<Self, String> {
        let mut git = Command::new("git");
        git.current_dir(&original).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let files = stdout(&mut git)?;
        let files = files.split_terminator('\0').map(PathBuf::from);
        let files = files.filter(|file| original.join(file).is_file()).collect();
        let folder = original.join("target/seeded-bugs/tree");
        if folder.is_dir() {
            cache::remove(&folder)?;
        }
        Ok(Self { original, folder, files })
    }

    /// Writes what differs from the original.
    fn restore(&self) -> Result<(), String> {
        for file in &self.files {
            let (from, to) = (self.original.join(file), self.folder.join(file));
            let wanted = fs::read(&from).map_err(|error| cache::at(&from, &error))?;
            if fs::read(&to).is_ok_and(|there| there == wanted) {
                continue;
            }
            cache::create(to.parent().unwrap_or(&to))?;
            fs::write(&to, wanted).map_err(|error| cache::at(&to, &error))?;
        }
        Ok(())
    }

    fn spoil(&self, patch: &Path) -> Result<(), String> {
        let mut git = Command::new("git");
        // It is no repository, and not to be taken for a part of ours.
        git.current_dir(&self.folder).env("GIT_CEILING_DIRECTORIES", self.beside(""));
        stdout(git.arg("apply").arg(patch)).map(drop)
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.folder.with_file_name(name)
    }

    /// What the first target says that finds the bug.
    fn fuzz(&self) -> Result<Option<String>, String> {
        let mut cargo = Command::new(workspace::cargo());
        // To build takes longer than to find.
        cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
        let programs = fuzz::build_with(cargo, fuzz::GUIDED, &self.folder, &self.beside("fuzz"))?;
        for target in TARGETS {
            let start = Instant::now();
            let output = output(target.command(&programs, &self.folder).args(LIMITS))?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stderr);
                let (name, runs, seconds) = (target.name, fuzz::runs(&text), start.elapsed().as_secs_f64());
                return Ok(Some(format!("{name}: {runs} runs, {seconds:.1} s: {}", complaint(&text))));
            }
        }
        Ok(None)
    }

    /// Which properties fail.
    fn test_properties(&self) -> Result<Option<String>, String> {
        let mut cargo = Command::new(workspace::cargo());
        cargo.current_dir(&self.folder).args(["test", "--locked", "--no-fail-fast", "-p"]);
        cargo.arg("vdso-time-properties").arg("--target-dir").arg(self.beside("properties"));
        let start = Instant::now();
        let output = output(&mut cargo)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
        let failed: Vec<String> = text.lines().filter_map(failed).collect();
        if failed.is_empty() && !output.status.success() {
            return Err(format!("the properties do not run:\n{}", String::from_utf8_lossy(&output.stderr)));
        }
        step(&format!("the properties took {} s", start.elapsed().as_secs()));
        Ok(Some(format!("properties: {}", failed.join(", "))).filter(|_| !failed.is_empty()))
    }
}

/// Where a target panicked and, in the line behind, why; or libFuzzer's own words.
fn complaint(text: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains(" panicked at "));
    let place = lines.next().and_then(|line| line.split(" panicked at ").nth(1));
    let reason: String = lines.next().unwrap_or_default().chars().take(60).collect();
    let summary = || text.lines().find(|line| line.starts_with("SUMMARY")).unwrap_or("no reason given");
    // From the root of the tree.
    let short = |place: &str| {
        place.rsplit("../").next().and_then(|place| place.rsplit("/tree/").next().map(str::to_owned))
    };
    place.and_then(short).map_or_else(|| summary().to_owned(), |place| format!("{place} {reason}"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::complaint;
    use crate::process::stdout;
    use crate::{cache, workspace};

    /// Else only the command would find out, which is not run at every change.
    #[test]
    fn every_bug_can_be_put_in() {
        let root = workspace::root();
        for patch in cache::entries(&root.join("fuzz/bugs")).unwrap() {
            let mut git = Command::new("git");
            git.current_dir(&root).args(["apply", "--check"]);
            stdout(git.arg(patch)).unwrap();
        }
    }

    #[test]
    fn a_complaint_is_the_panic_or_the_summary() {
        let panic = "INFO: Seed: 1\nthread '<unnamed>' (7) panicked at /x/tree/src/elf/hash.rs:5:9:\nattempt to add with overflow\nx";
        assert_eq!(complaint(panic), "src/elf/hash.rs:5:9: attempt to add with overflow");
        assert_eq!(complaint("a\nSUMMARY: libFuzzer: timeout\n"), "SUMMARY: libFuzzer: timeout");
    }
}
