//! Tests that cannot run on this machine record why.

use std::env;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};

/// Where [`not_run_here`] writes its lines: a file, or `-` for standard output. Without it, a test
/// program prints their number when it exits.
const SKIPS: &str = "VDSO_TIME_SKIPS";

/// Records that the current test, or the rest of it, does not run on this machine, and why.
///
/// Each job of CI compares these lines with `.ci/skips`, so no test is skipped there by accident.
pub fn not_run_here(why: impl Display) {
    let why = why.to_string();
    let words: Vec<&str> = why.split_whitespace().collect();
    let line = format!("not run here: {}: {}\n", test(), words.join(" "));
    let Some(path) = env::var_os(SKIPS) else {
        count().fetch_add(1, Ordering::Relaxed);
        return;
    };
    if path == "-" {
        // `println!` cannot be used: libtest hides the output of a test that passes, and in a
        // forked child another thread may have held the lock.
        let _ = nix::unistd::write(io::stdout(), line.as_bytes());
        return;
    }
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{SKIPS}: {error}"));
}

/// Returns the path of the current test, which begins with the name of its program. libtest gives
/// the test's name to the thread.
fn test() -> String {
    let program = this_program();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    // cargo appends a hash.
    let program = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    let thread = thread::current();
    let test = thread.name().unwrap_or("unnamed thread");
    format!("{program}::{test}")
}

/// Returns the number of checks that this process and its forked children did not run. The process
/// prints it when it exits.
///
/// The number is in memory that the children share, because a child leaves by _exit(2) and prints
/// nothing. So the first call must be before the first fork.
pub(crate) fn count() -> &'static AtomicUsize {
    static COUNT: OnceLock<&AtomicUsize> = OnceLock::new();
    COUNT.get_or_init(|| {
        let size = NonZeroUsize::new(size_of::<AtomicUsize>()).expect("it has a size");
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses a free place.
        let page = unsafe { mmap_anonymous(None, size, protection, MapFlags::MAP_SHARED) };
        let number = page.expect("mmap").cast();
        // SAFETY: `print_count` is a function of this program, which stays loaded, and does not
        // unwind.
        let status = unsafe { libc::atexit(print_count) };
        assert_eq!(status, 0, "atexit");
        // SAFETY: the page is aligned, contains zeros and stays mapped.
        unsafe { number.as_ref() }
    })
}

/// Prints how many checks were not run, if there are any.
extern "C" fn print_count() {
    let count = count().load(Ordering::Relaxed);
    let checks = match count {
        0 => return,
        1 => "1 check was".to_owned(),
        count => format!("{count} checks were"),
    };
    let line = format!("{checks} not run here; {SKIPS}=- prints which, and why\n\n");
    let _ = nix::unistd::write(io::stdout(), line.as_bytes());
}

/// Returns whether /proc is mounted, or records the test as not run.
pub fn has_proc() -> bool {
    match fs::metadata("/proc/self") {
        Ok(_) => true,
        Err(error) => {
            not_run_here(format!("/proc is not mounted: /proc/self: {error}"));
            false
        }
    }
}

/// Returns whether a program works, or records the test as not run. The program must succeed with
/// these arguments.
pub fn has_tool(tool: &str, arguments: &[&str]) -> bool {
    if tool == "valgrind" && !has_proc() {
        return false;
    }
    let why = match Command::new(tool).args(arguments).output() {
        Ok(output) if output.status.success() => return true,
        Ok(Output { status, stderr, .. }) => {
            let said = String::from_utf8_lossy(&stderr);
            format!("{tool} does not work: {status}: {said}")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => format!("{tool} is not installed"),
        Err(error) => format!("{tool}: {error}"),
    };
    not_run_here(why);
    false
}

/// Returns the file of this program: from /proc, or else the name with which it was started.
pub fn this_program() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| env::args_os().next().unwrap_or_default().into())
}

/// Returns the directory `tmp` of cargo's target directory, in which this test program is.
pub fn target_tmpdir() -> PathBuf {
    let program = this_program();
    let target = program.ancestors().nth(3).unwrap_or(Path::new("."));
    let directory = target.join("tmp");
    let _ = fs::create_dir_all(&directory);
    directory
}
