//! `/init` of an emulated machine: does the job that the runner put into the initramfs, and powers
//! the machine off. It is linked statically, because the machine has no libraries.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
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
    Frame, JOB, Job, LONGEST, Message, acknowledgement, exit_code,
};

/// How long to wait for an acknowledgement before the frame is repeated.
const PATIENCE: Duration = Duration::from_secs(1);

/// The interval between two looks at a program's output.
const INTERVAL: Duration = Duration::from_millis(20);

/// The exit code of a shell for a program that it cannot start.
const NOT_STARTED: u8 = 127;

fn main() {
    let mut link = Link::new();
    if let Err(error) = do_job(&mut link) {
        link.send(Message::Err(format!("guest-init: {error}\n").into()));
    }
    link.send(Message::End);
    // If this fails, init exits and the kernel panics, which ends QEMU too.
    let _ = reboot(RebootCommand::PowerOff);
}

fn do_job(link: &mut Link) -> io::Result<()> {
    link.send(Message::Hello);
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

    let job = Job::deserialize_bin(&fs::read(JOB)?).map_err(io::Error::other)?;
    if let Some(tv_sec) = job.clock {
        clock_settime(ClockId::Realtime, Timespec { tv_sec, tv_nsec: 0 })?;
    }
    for words in &job.programs {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidData)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&job.folder)
            .envs(&job.environment);
        let code = run(link, &mut command).map_or_else(
            |error| {
                link.send(Message::Err(
                    format!("guest-init: {program}: {error}\n").into(),
                ));
                NOT_STARTED
            },
            exit_code,
        );
        link.send(Message::Ended(code));
    }
    Ok(())
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
        for (kind, file) in [
            (Message::Out as fn(Vec<u8>) -> _, &mut out),
            (Message::Err, &mut err),
        ] {
            let mut new = Vec::new();
            file.read_to_end(&mut new)?;
            new.chunks(LONGEST)
                .for_each(|part| link.send(kind(part.to_vec())));
        }
        match status {
            Some(status) => return Ok(status),
            None => thread::sleep(INTERVAL),
        }
    }
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
        // In raw mode the kernel neither changes nor echoes bytes. A pipe needs no mode.
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

    /// Returns when the runner has received the message.
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
