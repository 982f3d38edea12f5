//! Tests with a Debian mirror that is made for them, and that is read as files or from 127.0.0.1.
//! Its index can be inconsistent, and packages can be missing. The tests check how the command ends
//! if its machine cannot be fetched, and what is in the cache afterwards.

mod common;

use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::has_tool;

/// The status of a command whose machine cannot be fetched: EX_TEMPFAIL of sysexits.h.
const NOT_FETCHED: i32 = 75;

/// The machine's first packages are a kernel and a shell. The mirror has nothing else.
const KERNEL: &str = "guest-amd64-6.1/vmlinuz";

/// A program that fails as apt-get does on a full disk. apt's first error is then that the mirror
/// has no index.
const FULL: &str = "\
#!/bin/sh
echo \"E: The repository 'file:/mirror bookworm Release' does not have a Release file.\" >&2
echo 'E: Write error - write (28: No space left on device)' >&2
exit 100
";

/// A directory with a mirror, the key that signs it, and a cache.
struct Mirror {
    directory: PathBuf,
}

/// Returns whether this machine has the programs that create a mirror.
fn can_make_a_mirror() -> bool {
    let tools = ["gpg", "dpkg-deb", "apt-get", "apt-config"];
    tools.iter().all(|tool| has_tool(tool, &["--version"]))
}

impl Mirror {
    /// Creates a mirror with one kernel in the suite `bookworm`.
    fn new(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("mirror-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let mirror = Self { directory };
        mirror.sign("first");
        mirror
    }

    /// Signs the index with a key of this name.
    fn sign(&self, key: &str) {
        let mut make = Command::new("sh");
        make.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mirror.sh"))
            .arg(&self.directory)
            .arg(key);
        let Output { status, stderr, .. } = make.output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    }

    /// Changes the index, so that it no longer has the size that InRelease states.
    fn lie(&self) {
        let index = self
            .directory
            .join("mirror/dists/bookworm/main/binary-amd64/Packages");
        let text = fs::read_to_string(&index).unwrap() + "Tag: newer\n";
        fs::write(index, text).unwrap();
    }

    /// Returns the command that runs a program on a machine that is fetched from this mirror.
    /// `address` is the mirror's address, and the cache is the test's own.
    fn command(&self, address: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vdso-time-kernel-runner"));
        command.args(["run", "x86_64@6.1", "/bin/true"]);
        command.env("XDG_CACHE_HOME", self.directory.join("cache"));
        let key = self.directory.join("first.gpg");
        command.env(
            "VDSO_TIME_DEBIAN_MIRROR",
            format!("[signed-by={}] {address}", key.display()),
        );
        command.env_remove("http_proxy").env_remove("APT_CONFIG");
        command
    }

    fn run(&self, address: &str) -> (Output, String) {
        let output = self.command(address).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, errors)
    }

    fn file(&self) -> String {
        format!("file:{}", self.directory.join("mirror").display())
    }

    /// Removes the kernel. Returns whether the last run had unpacked it.
    fn take_kernel(&self) -> bool {
        let kernel = self.directory.join("cache/vdso-time").join(KERNEL);
        let is_there = fs::read(&kernel).is_ok_and(|bytes| bytes == b"a kernel");
        let _ = fs::remove_dir_all(kernel.parent().unwrap());
        is_there
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Asserts the status 75, and one line with the command, the fault and the variable.
fn assert_not_fetched((output, errors): &(Output, String), fault: &str) {
    assert_eq!(output.status.code(), Some(NOT_FETCHED), "{errors}");
    let lines: Vec<&str> = errors
        .lines()
        .filter(|line| line.contains(" did not run: "))
        .collect();
    let [line] = lines[..] else {
        panic!("{errors}")
    };
    assert!(
        line.starts_with("vdso-time-kernel-runner: run x86_64@6.1 /bin/true did not run: "),
        "{line}"
    );
    assert!(
        line.contains(fault) && line.contains("VDSO_TIME_DEBIAN_MIRROR"),
        "{line}"
    );
    assert_eq!(errors.lines().last(), Some(line));
}

#[test]
fn a_mirror_that_is_out_of_step_ends_with_a_status_of_its_own() {
    if !can_make_a_mirror() {
        return;
    }
    let mirror = Mirror::new("lies");
    mirror.lie();
    assert_not_fetched(&mirror.run(&mirror.file()), "main/binary-amd64/Packages");
    assert!(!mirror.take_kernel());
    // An index without a signature is used neither now nor later.
    mirror.sign("other");
    assert_not_fetched(&mirror.run(&mirror.file()), "is not signed");
    mirror.lie();
    assert_not_fetched(&mirror.run(&mirror.file()), "");
    assert!(!mirror.take_kernel());
}

#[test]
fn a_full_disk_is_not_the_mirrors_fault() {
    if !can_make_a_mirror() {
        return;
    }
    let mirror = Mirror::new("full");
    let programs = mirror.directory.join("programs");
    fs::create_dir(&programs).unwrap();
    let apt_get = programs.join("apt-get");
    fs::write(&apt_get, FULL).unwrap();
    fs::set_permissions(apt_get, Permissions::from_mode(0o755)).unwrap();
    let mut path = programs.into_os_string();
    path.push(":");
    path.push(env::var_os("PATH").unwrap());
    let mut command = mirror.command(&mirror.file());
    let output = command.env("PATH", path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let fault =
        "apt-get failed on this machine: Write error - write (28: No space left on device)\n";
    assert!(errors.ends_with(fault), "{errors}");
}

#[test]
fn an_older_index_is_used_while_its_packages_can_be_fetched() {
    if !can_make_a_mirror() {
        return;
    }
    let mirror = Mirror::new("older");
    // The mirror has a kernel but no QEMU.
    assert_not_fetched(&mirror.run(&mirror.file()), "bookworm-backports");
    assert!(mirror.take_kernel());
    mirror.lie();
    let run = mirror.run(&mirror.file());
    assert!(run.1.contains("an older index"), "{}", run.1);
    assert!(mirror.take_kernel(), "{}", run.1);
    fs::remove_file(
        mirror
            .directory
            .join("mirror/pool/linux-image-cloud-amd64.deb"),
    )
    .unwrap();
    assert_not_fetched(&mirror.run(&mirror.file()), "linux-image-cloud-amd64.deb");
    assert!(!mirror.take_kernel());
}

#[test]
fn a_mirror_is_asked_again_after_a_pause() {
    if !can_make_a_mirror() {
        return;
    }
    let mirror = Mirror::new("heals");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let directory = mirror.directory.join("mirror");
    let count = &*Box::leak(Box::new(AtomicUsize::new(0)));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(stream, &directory, count);
        }
    });
    let (_, errors) = mirror.run(&address);
    assert!(mirror.take_kernel(), "{errors}");
    assert!(count.load(Ordering::Relaxed) >= 2, "{errors}");
}

/// Answers one request for a file. The first time an index is requested, the answer is longer than
/// the file.
fn answer(mut stream: TcpStream, directory: &Path, indexes: &AtomicUsize) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let path = request
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .trim_start_matches('/');
    let Ok(mut body) = fs::read(directory.join(path)) else {
        return write!(
            stream,
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    };
    if path.ends_with("/Packages") && indexes.fetch_add(1, Ordering::Relaxed) == 0 {
        body.extend(b"Tag: newer\n");
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}
