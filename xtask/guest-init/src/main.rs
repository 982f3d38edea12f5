//! `/init` of an emulated machine: does the job that the runner put into the initramfs, and powers
//! the machine off. It is linked statically, because the machine has no libraries.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use guest_init::{Frame, JOB, Kind, LONGEST, Status, acknowledgement, decode_fields};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustix::time::{ClockId, Timespec, clock_settime};

/// How long to wait for an acknowledgement before the frame is repeated.
const PATIENCE: Duration = Duration::from_secs(1);

/// The interval between two looks at a program's output.
const INTERVAL: Duration = Duration::from_millis(20);

/// Exit code 127, as wait(2) encodes it. A shell uses it for a program that cannot be started.
const NOT_STARTED: i32 = 127 << 8;

fn main() {
    let mut link = Link::new();
    if let Err(error) = do_job(&mut link) {
        link.send(Kind::Err, format!("guest-init: {error}\n").as_bytes());
    }
    link.send(Kind::End, &[]);
    // If this fails, init exits and the kernel panics, which ends QEMU too.
    let _ = reboot(RebootCommand::PowerOff);
}

fn do_job(link: &mut Link) -> io::Result<()> {
    link.send(Kind::Hello, &[]);
    for (kind, folder) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        fs::create_dir_all(folder)?;
        match mount(kind, folder, kind, MountFlags::empty(), None) {
            Ok(()) | Err(rustix::io::Errno::BUSY) => {} // the kernel may have mounted it
            Err(error) => return Err(io::Error::other(format!("cannot mount {folder}: {error}"))),
        }
    }
    fs::create_dir_all("/tmp")?;
    // From here on only a panic may write between frames.
    fs::write("/proc/sys/kernel/printk", "1")?;

    let job = Path::new(JOB);
    if let Ok(seconds) = fs::read_to_string(job.join("clock")) {
        let tv_sec = seconds.parse().map_err(io::Error::other)?;
        clock_settime(ClockId::Realtime, Timespec { tv_sec, tv_nsec: 0 })?;
    }
    if job.join("dump").exists() {
        link.send(Kind::Image, &vdso_image()?);
    }
    let folder = fs::read_to_string(job.join("folder"))?;
    let environment = decode_fields(&fs::read_to_string(job.join("environment"))?);
    for number in 0.. {
        let Ok(words) = fs::read_to_string(job.join(number.to_string())) else { break };
        let words = decode_fields(&words);
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidData)?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&folder);
        command.envs(environment.iter().filter_map(|variable| variable.split_once('=')));
        let status = run(link, &mut command);
        link.send(Kind::Status, status.encode().as_bytes());
    }
    Ok(())
}

/// Runs the program and sends its output.
fn run(link: &mut Link, command: &mut Command) -> Status {
    let start = Instant::now();
    let status = run_to_end(link, command).unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy();
        link.send(Kind::Err, format!("guest-init: {program}: {error}\n").as_bytes());
        ExitStatus::from_raw(NOT_STARTED)
    });
    Status::new(status, start.elapsed())
}

/// The program writes to files and not to pipes: a process that it leaves running would keep a pipe
/// open, and the end of the output would never come.
fn run_to_end(link: &mut Link, command: &mut Command) -> io::Result<ExitStatus> {
    let (out_writer, mut out) = unnamed_file("/stdout")?;
    let (err_writer, mut err) = unnamed_file("/stderr")?;
    let mut child = command.stdin(Stdio::null()).stdout(out_writer).stderr(err_writer).spawn()?;
    loop {
        let status = child.try_wait()?;
        for (kind, file) in [(Kind::Out, &mut out), (Kind::Err, &mut err)] {
            let mut new = Vec::new();
            file.read_to_end(&mut new)?;
            link.send(kind, &new);
        }
        match status {
            Some(status) => return Ok(status),
            None => thread::sleep(INTERVAL),
        }
    }
}

/// The writer and the reader of a new file.
fn unnamed_file(path: &str) -> io::Result<(File, File)> {
    let writer = File::options().create(true).append(true).open(path)?;
    let reader = File::open(path)?;
    fs::remove_file(path)?;
    Ok((writer, reader))
}

/// The vDSO image of this process.
fn vdso_image() -> io::Result<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let line = line.ok_or_else(|| io::Error::other("this kernel provides no vDSO"))?;
    let range = line.split(' ').next().and_then(|range| range.split_once('-'));
    let (start, end) = range.ok_or(io::ErrorKind::InvalidData)?;
    let address = |digits| u64::from_str_radix(digits, 16).map_err(io::Error::other);
    let (start, end) = (address(start)?, address(end)?);
    let mut image = vec![0; (end - start) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, start)?;
    Ok(image)
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
        // In raw mode the kernel neither changes nor echoes bytes. A pipe needs no mode.
        if let Ok(mut settings) = tcgetattr(io::stdin()) {
            settings.make_raw();
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &settings);
        }
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { lines, number: 0 }
    }

    /// Returns when the runner has received everything. Only `Hello` and `End` may be empty.
    fn send(&mut self, kind: Kind, payload: &[u8]) {
        if matches!(kind, Kind::Hello | Kind::End) {
            self.send_frame(kind, &[]);
        }
        payload.chunks(LONGEST).for_each(|part| self.send_frame(kind, part));
    }

    fn send_frame(&mut self, kind: Kind, payload: &[u8]) {
        let bytes = Frame { number: self.number, kind, payload: payload.into() }.encode();
        let expected = acknowledgement(self.number);
        loop {
            let mut console = io::stdout();
            // If the console is gone, QEMU is gone.
            let _ = console.write_all(&bytes).and_then(|()| console.flush());
            while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
                if line == expected {
                    self.number += 1;
                    return;
                }
            }
        }
    }
}
