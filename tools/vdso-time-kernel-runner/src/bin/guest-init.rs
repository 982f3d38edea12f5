//! `/init` of an emulated machine: does the job that the runner put into the initramfs, and powers
//! the machine off. It is linked statically, because the machine has no libraries.

use std::ffi::CStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use nanoserde::DeBin as _;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustix::time::{ClockId, Timespec, clock_settime};
use vdso_time_kernel_runner::protocol::{
    BUSYBOX, Frame, JOB, Job, LONGEST, Message, acknowledgement, exit_code,
};

/// How long to wait for an acknowledgement before the frame is repeated.
const PATIENCE: Duration = Duration::from_secs(1);

/// The interval at which a program's output is read.
const INTERVAL: Duration = Duration::from_millis(20);

/// The exit code that a shell returns if it cannot start a program.
const NOT_STARTED: u8 = 127;

/// The directories of an ordinary system.
const DIRECTORIES: &[(&str, u32)] = &[
    ("/bin", 0o755),
    ("/root", 0o700),
    ("/run", 0o755),
    ("/sbin", 0o755),
    ("/tmp", 0o1777),
    ("/usr/bin", 0o755),
    ("/usr/local/bin", 0o755),
    ("/usr/sbin", 0o755),
    ("/var/tmp", 0o1777),
];

/// The file systems of an ordinary system: their types, mount points and options.
const MOUNTS: &[(&str, &str, &CStr)] = &[
    ("proc", "/proc", c""),
    ("sysfs", "/sys", c""),
    ("devtmpfs", "/dev", c""),
    ("devpts", "/dev/pts", c"gid=5,mode=620,ptmxmode=666"),
    ("tmpfs", "/dev/shm", c"mode=1777"),
];

/// The links that udev makes.
const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

fn main() {
    let mut link = Link::new();
    if let Err(error) = do_job(&mut link) {
        link.send(Message::Err(format!("guest-init: {error}\n").into()));
    }
    link.send(Message::End);
    // If `reboot` fails, init exits. The kernel then panics, which ends QEMU as well.
    let _ = reboot(RebootCommand::PowerOff);
}

fn do_job(link: &mut Link) -> io::Result<()> {
    link.send(Message::Hello);
    make_system()?;
    // From here on, the kernel writes to the console only if it panics.
    fs::write("/proc/sys/kernel/printk", "1")?;

    let job = Job::deserialize_bin(&fs::read(JOB)?).map_err(io::Error::other)?;
    if let Some(tv_sec) = job.clock {
        clock_settime(ClockId::Realtime, Timespec { tv_sec, tv_nsec: 0 })?;
    }
    for words in &job.programs {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidData)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&job.directory)
            .envs(&job.environment);
        let killed_before = killed_for_memory();
        let code = match run(link, &mut command) {
            Ok(status) => exit_code(status),
            Err(error) => {
                let text = format!("guest-init: {program}: {error}\n");
                link.send(Message::Err(text.into()));
                NOT_STARTED
            }
        };
        let killed = killed_for_memory().saturating_sub(killed_before);
        if killed > 0 {
            link.send(Message::OutOfMemory(killed));
        }
        link.send(Message::Ended(code));
    }
    Ok(())
}

/// Creates what programs expect on every Linux system but the initramfs cannot contain.
fn make_system() -> io::Result<()> {
    for (path, mode) in DIRECTORIES {
        // The initramfs already contains the directory `path` if the package under test is below
        // `path`. The directory then keeps the mode that it has on the host.
        if !Path::new(path).is_dir() {
            fs::create_dir_all(path)?;
            fs::set_permissions(path, Permissions::from_mode(*mode))?;
        }
    }
    for (kind, path, options) in MOUNTS {
        fs::create_dir_all(path)?;
        match mount(*kind, *path, *kind, MountFlags::empty(), Some(*options)) {
            Ok(()) | Err(rustix::io::Errno::BUSY) => {} // the kernel may have mounted it
            Err(error) => return Err(io::Error::other(format!("cannot mount {path}: {error}"))),
        }
    }
    for (path, target) in LINKS {
        if !Path::new(path).exists() {
            symlink(target, path)?;
        }
    }
    fs::write("/proc/sys/kernel/hostname", "guest")?;
    if Path::new(BUSYBOX).exists() {
        busybox(&["--install", "-s"])?;
        // The kernel then gives the interface its addresses, 127.0.0.1 and ::1.
        busybox(&["ip", "link", "set", "lo", "up"])?;
    }
    Ok(())
}

fn busybox(arguments: &[&str]) -> io::Result<()> {
    let status = Command::new(BUSYBOX)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        return Ok(());
    }
    let words = arguments.join(" ");
    Err(io::Error::other(format!("busybox {words}: {status}")))
}

/// Returns how many processes the kernel has killed because no memory was left.
fn killed_for_memory() -> u32 {
    let counters = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = counters
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Runs the program and sends its output.
///
/// The program writes to files and not to pipes: a process that it leaves running would keep a pipe
/// open, and the end of the output would never come.
fn run(link: &mut Link, command: &mut Command) -> io::Result<ExitStatus> {
    let (out_writer, mut out) = unnamed_file("/stdout")?;
    let (err_writer, mut err) = unnamed_file("/stderr")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out_writer)
        .stderr(err_writer)
        .spawn()?;
    loop {
        let status = child.try_wait()?;
        send_new(link, Message::Out, &mut out)?;
        send_new(link, Message::Err, &mut err)?;
        if let Some(status) = status {
            return Ok(status);
        }
        thread::sleep(INTERVAL);
    }
}

/// Sends what the program has written to the file since the last call.
fn send_new(link: &mut Link, kind: fn(Vec<u8>) -> Message, file: &mut File) -> io::Result<()> {
    let mut new = Vec::new();
    file.read_to_end(&mut new)?;
    for part in new.chunks(LONGEST) {
        link.send(kind(part.to_vec()));
    }
    Ok(())
}

/// Returns the writer and the reader of a new file.
fn unnamed_file(path: &str) -> io::Result<(File, File)> {
    let writer = File::options().create(true).append(true).open(path)?;
    let reader = File::open(path)?;
    fs::remove_file(path)?;
    Ok((writer, reader))
}

/// The guest's end of the console.
struct Link {
    /// The lines that the runner sent.
    lines: Receiver<String>,
    /// The number of the next frame.
    number: u32,
}

impl Link {
    fn new() -> Self {
        // In raw mode the kernel neither changes nor echoes bytes. If standard input is a pipe and
        // not a console, `tcgetattr` fails, and no mode is set, because the kernel does not change
        // the bytes of a pipe.
        if let Ok(mut settings) = tcgetattr(io::stdin()) {
            settings.make_raw();
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &settings);
        }
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            io::stdin()
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { lines, number: 0 }
    }

    /// Sends a message, and returns when the runner has acknowledged it.
    fn send(&mut self, message: Message) {
        let frame = Frame(self.number, message).encode();
        let expected = acknowledgement(self.number);
        loop {
            let mut console = io::stdout();
            // If the console is gone, QEMU is gone.
            let _ = console
                .write_all(frame.as_bytes())
                .and_then(|()| console.flush());
            while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
                if line == expected {
                    self.number += 1;
                    return;
                }
            }
        }
    }
}
