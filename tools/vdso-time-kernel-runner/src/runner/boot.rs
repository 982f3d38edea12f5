//! One boot of a kernel in QEMU.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{self, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use rustix::fs::{MemfdFlags, memfd_create};

use super::libtest::Tests;
use super::{
    MEMORY_VARIABLE, NOT_STARTED, Process, Program, Run, ends_with_this_process, initramfs,
    timed_out,
};
use crate::protocol::{Console, Frame, Message, acknowledgement};
use crate::step;

/// How many of the kernel's last lines an error contains.
const LAST_LINES: usize = 20;

/// The memory in MiB that a kernel keeps for itself while it unpacks the archive. In guests with
/// 1024 MiB, kernels kept between 40 MiB (armv7@5.10) and 260 MiB (loongarch64@7). In guests with
/// more memory they keep more, up to a twentieth of it (ppc64le@6.1).
const KERNEL: u64 = 288;

#[derive(Debug, PartialEq)]
struct Failure {
    text: String,
    /// Whether QEMU ended before init ran, which happens about once in fifty boots.
    may_retry: bool,
}

/// Boots the kernel and runs the programs.
pub(super) fn boot(run: &Run<'_>, init: &Path, mut ended: impl FnMut(&Program, u8)) -> Result<()> {
    let archive = Archive::new(run, init)?;
    let mut outcome = boot_once(run, &archive, &mut ended)?;
    if let Err(failure) = &outcome {
        if failure.may_retry {
            step(&format!("{}\nbooting again", failure.text));
            outcome = boot_once(run, &archive, &mut ended)?;
        }
    }
    outcome.map_err(|failure| anyhow!(failure.text))
}

/// The initramfs, in a memfd. Unlike a file in /tmp, it has no name that another user could take
/// first.
struct Archive {
    file: File,
    size: u64,
    /// The guest's memory in MiB.
    memory: u64,
}

impl Archive {
    fn new(run: &Run<'_>, init: &Path) -> Result<Self> {
        let initramfs = initramfs::create(run, init)?;
        let mut file = File::from(memfd_create("initramfs", MemfdFlags::CLOEXEC)?);
        file.write_all(&initramfs.archive)?;
        let size = initramfs.archive.len() as u64;
        Ok(Self {
            file,
            size,
            memory: memory(run.memory, size, initramfs.unpacked),
        })
    }

    /// Returns the path that QEMU opens.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.file.as_raw_fd())
    }
}

/// Returns the guest's memory in MiB, which is at least `given`.
///
/// The kernel unpacks the archive into a tmpfs, and then frees the archive. The tmpfs holds at most
/// half of the memory that the kernel and the archive leave free. If that is too little, the kernel
/// prints "Initramfs unpacking failed: write error" and boots without the rest of the files. The
/// kernel's argument `rootfstype=ramfs` would remove the limit, but a ramfs has neither
/// fallocate(2) nor a size for statfs(2), which tests expect.
///
/// The machine of ppc64le needs a multiple of 256 MiB.
fn memory(given: u32, archive: u64, unpacked: u64) -> u64 {
    let files = (archive + 2 * unpacked).div_ceil(1 << 20);
    let needed = files + files / 16 + KERNEL;
    needed.max(given.into()).next_multiple_of(256)
}

fn boot_once(
    run: &Run<'_>,
    archive: &Archive,
    ended: impl FnMut(&Program, u8),
) -> Result<Result<(), Failure>> {
    let words = run.plan.qemu.split_first();
    let (program, arguments) = words.context("the plan names no QEMU")?;
    let mut qemu = ends_with_this_process(program);
    qemu.args(arguments);
    let path = archive.path();
    let append = &run.plan.append;
    if let Some(address) = run.plan.initrd {
        let device = format!("loader,file={path},addr={address:#x},force-raw=on");
        let append = format!("{append} initrd={address:#x},{}", archive.size);
        qemu.args(["-device", &device, "-append", &append]);
    } else {
        qemu.args(["-initrd", &path, "-append", append]);
    }
    qemu.args(["-m", &archive.memory.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut guest = Process(qemu.spawn().context(NOT_STARTED)?);
    let output = guest.0.stdout.take().context("QEMU has no output")?;
    let input = guest.0.stdin.take().context("QEMU has no input")?;
    let output = read_in_thread(output);
    Ok(listen(run, archive.memory, input, &output, ended))
}

/// Reads in a thread, so that waiting for the next bytes can time out.
fn read_in_thread(mut output: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 1 << 12];
        while let Ok(length @ 1..) = output.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Reads the console until it ends, and acknowledges each frame on QEMU's input.
fn listen(
    run: &Run<'_>,
    memory: u64,
    mut input: impl Write,
    bytes: &Receiver<Vec<u8>>,
    ended: impl FnMut(&Program, u8),
) -> Result<(), Failure> {
    let mut console = Console::default();
    let mut job = Progress::new(run, memory, ended);
    // The number of the next frame. All earlier frames have arrived, in order.
    let mut next = 0;
    loop {
        while let Some(Frame(number, message)) = console.next_frame() {
            if number > next {
                continue;
            }
            // If QEMU has ended, the next read reports it.
            let _ = writeln!(input, "{}", acknowledgement(number));
            if number < next {
                continue;
            }
            next += 1;
            if message == Message::End {
                return job.end();
            }
            job.advance(message)?;
        }
        let has_started = next > 0;
        let patience = job.deadline.saturating_duration_since(Instant::now());
        match bytes.recv_timeout(patience) {
            Ok(more) => console.push(&more),
            Err(RecvTimeoutError::Timeout) => {
                let text = timed_out(&job.what_runs(), run.limit);
                return Err(failure(text, has_started, &console));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let text = format!("{}: QEMU ended", job.program());
                let mut failure = failure(text, has_started, &console);
                failure.may_retry = !has_started;
                return Err(failure);
            }
        }
    }
}

/// Adds to an error text how far the boot got, and the last lines that the kernel printed.
fn failure(mut text: String, has_started: bool, console: &Console) -> Failure {
    let lines = last_lines(&console.messages());
    if !has_started {
        text.push_str("; init did not start");
    }
    if !has_started || !lines.is_empty() {
        text.push_str(". The kernel's last lines:\n  ");
        text.push_str(&lines);
    }
    Failure {
        text,
        may_retry: false,
    }
}

/// The progress of the guest's job.
struct Progress<'a, Ended> {
    run: &'a Run<'a>,
    /// The guest's memory in MiB.
    memory: u64,
    /// The running program, and the programs after it.
    programs: std::slice::Iter<'a, Program>,
    tests: Tests,
    deadline: Instant,
    ended: Ended,
}

impl<'a, Ended: FnMut(&Program, u8)> Progress<'a, Ended> {
    fn new(run: &'a Run<'a>, memory: u64, ended: Ended) -> Self {
        Self {
            run,
            memory,
            programs: run.programs.iter(),
            tests: Tests::default(),
            deadline: Instant::now() + run.limit,
            ended,
        }
    }

    fn advance(&mut self, message: Message) -> Result<(), Failure> {
        match message {
            Message::Hello => self.deadline = Instant::now() + self.run.limit,
            Message::Out(bytes) => {
                self.tests.push(&bytes);
                write(&self.run.out, &bytes)?;
            }
            Message::Err(bytes) => write(&self.run.err, &bytes)?,
            Message::OutOfMemory(count) => {
                let what = self.what_runs();
                step(&out_of_memory(&what, count, self.memory));
            }
            Message::Ended(code) => {
                if let Some(program) = self.programs.next() {
                    (self.ended)(program, code);
                }
                self.tests = Tests::default();
                self.deadline = Instant::now() + self.run.limit;
            }
            Message::End => {}
        }
        Ok(())
    }

    /// Returns an error if a program has not run.
    fn end(mut self) -> Result<(), Failure> {
        match self.programs.next() {
            None => Ok(()),
            Some(program) => Err(Failure {
                text: format!("{}: did not run", program.path),
                may_retry: false,
            }),
        }
    }

    /// Returns the path of the running program, or of the next one.
    fn program(&self) -> &'a str {
        match self.programs.as_slice().first() {
            Some(program) => &program.path,
            None => "init",
        }
    }

    /// Returns the running program and, if they are known, its running tests.
    fn what_runs(&self) -> String {
        let program = self.program();
        let names = self.tests.running();
        match &names[..] {
            [] => program.to_owned(),
            [name] => format!("{program}: the test {name}"),
            names => format!("{program}: the tests {}", names.join(", ")),
        }
    }
}

fn out_of_memory(what: &str, count: u32, memory: u64) -> String {
    let processes = if count == 1 {
        "a process".to_owned()
    } else {
        format!("{count} processes")
    };
    format!(
        "{what}: the kernel killed {processes}, because the {memory} MiB of the guest are used up; \
         {MEMORY_VARIABLE}=MIB gives it more"
    )
}

/// Writes a program's output. EPIPE is not an error.
fn write(mut to: &File, bytes: &[u8]) -> Result<(), Failure> {
    match to.write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure {
            text: format!("cannot write the program's output: {error}"),
            may_retry: false,
        }),
        _ => Ok(()),
    }
}

/// Returns the kernel's last lines. All except the first are indented.
fn last_lines(messages: &str) -> String {
    let lines: Vec<&str> = messages
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Plan;
    use super::super::files::{BLOCK, MOST};
    use super::*;

    const LINES: &str = "The kernel's last lines:\n  ";

    /// The runner's report of a boot with the program `/p`.
    #[derive(Debug)]
    struct Outcome {
        result: Result<(), Failure>,
        /// The exit code of the program, if it ended.
        codes: Vec<u8>,
        /// The numbers of the acknowledged frames.
        acknowledged: String,
    }

    impl Outcome {
        fn error(&self) -> &str {
            match &self.result {
                Ok(()) => "",
                Err(failure) => &failure.text,
            }
        }

        fn may_retry(&self) -> bool {
            matches!(&self.result, Err(failure) if failure.may_retry)
        }
    }

    /// Plays a boot whose console sends these frames or texts and then ends.
    fn boot(sent: &[&str]) -> Outcome {
        let (sender, receiver) = channel();
        sender.send(sent.concat().into()).unwrap();
        drop(sender);
        listen_to(&receiver, Duration::from_secs(60), "/dev/full")
    }

    fn listen_to(receiver: &Receiver<Vec<u8>>, limit: Duration, out: &str) -> Outcome {
        let programs = [Program {
            path: "/p".into(),
            arguments: Vec::new(),
        }];
        let plan = Plan::default();
        let run = Run {
            limit,
            out: File::options().write(true).open(out).unwrap(),
            ..Run::new(&plan, &programs).unwrap()
        };
        let mut codes = Vec::new();
        let mut input = Vec::new();
        let result = listen(&run, 512, &mut input, receiver, |_, code| codes.push(code));
        let lines = String::from_utf8(input).unwrap();
        Outcome {
            result,
            codes,
            acknowledged: lines.replace("ack ", "").replace('\n', ""),
        }
    }

    fn frame(number: u32, message: Message) -> String {
        Frame(number, message).encode()
    }

    #[test]
    fn each_frame_counts_once() {
        let hello = frame(0, Message::Hello);
        let ended = frame(1, Message::Ended(3));
        let end = frame(2, Message::End);
        for (sent, acknowledged) in [
            (&[&*hello, &ended, &end][..], "012"),
            (&[&hello, &ended, &ended, &hello, &ended, &end], "011012"),
        ] {
            let outcome = boot(sent);
            assert_eq!(outcome.result, Ok(()));
            assert_eq!(outcome.codes, [3]);
            assert_eq!(outcome.acknowledged, acknowledged);
        }
        // The guest repeats the first frame until it is acknowledged.
        let outcome = boot(&[&ended, &end]);
        assert_eq!(outcome.acknowledged, "");
        assert!(outcome.codes.is_empty());
    }

    #[test]
    fn an_error_says_how_far_the_boot_got() {
        let hello = frame(0, Message::Hello);
        let end = frame(1, Message::End);
        let panic = "Kernel panic - not syncing: no init";

        let outcome = boot(&[panic]);
        let error = format!("/p: QEMU ended; init did not start. {LINES}{panic}");
        assert_eq!(outcome.error(), error);
        assert!(outcome.may_retry());

        let outcome = boot(&[&hello]);
        assert_eq!(outcome.error(), "/p: QEMU ended");
        assert!(!outcome.may_retry());

        let outcome = boot(&[&hello, panic]);
        let error = format!("/p: QEMU ended. {LINES}{panic}");
        assert_eq!(outcome.error(), error);

        assert_eq!(boot(&[&hello, &end]).error(), "/p: did not run");
    }

    #[test]
    fn output_that_cannot_be_written_is_an_error() {
        let said = frame(1, Message::Out("said".into()));
        let outcome = boot(&[&frame(0, Message::Hello), &said]);
        let error = "cannot write the program's output: No space left on device (os error 28)";
        assert_eq!(outcome.error(), error);
    }

    #[test]
    fn a_test_that_hangs_is_named_and_the_output_before_it_is_written() {
        let (sender, receiver) = channel();
        let output = "test a ... ok\ntest b ... ";
        let hello = frame(0, Message::Hello);
        let out = frame(1, Message::Out(output.into()));
        sender.send([hello, out].concat().into()).unwrap();
        let file = std::env::temp_dir().join(format!("out-{}", process::id()));
        File::create(&file).unwrap();
        // This test keeps `sender` until the time limit has passed, as if QEMU were still running.
        let limit = Duration::from_secs(1);
        let outcome = listen_to(&receiver, limit, file.to_str().unwrap());
        let written = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(file).unwrap();
        drop(sender);
        assert_eq!(written, output);
        let error = outcome.error();
        assert!(
            error.starts_with("/p: the test b: still running after 1 s;"),
            "{error}"
        );
    }

    #[test]
    fn a_large_initramfs_gets_memory_of_its_own() {
        const MIB: u64 = 1 << 20;
        assert_eq!(memory(512, 70 * MIB, 70 * MIB), 512);
        assert_eq!(memory(512, 70 * MIB, 71 * MIB), 768);
        assert_eq!(memory(2000, 70 * MIB, 70 * MIB), 2048);
        // 3000 small files in pages of 64 KiB.
        assert_eq!(memory(512, 3 * MIB, 188 * MIB), 768);
    }

    /// A guest with [`MOST`] bytes of files must need no more than 1024 MiB, because the board of
    /// `+notimer` has no more.
    ///
    /// An archive is larger than its files, because it also contains a header and a name for each
    /// file. So this test assumes many small files: each file fills one block and has a name of 120
    /// bytes.
    #[test]
    fn the_largest_guest_fits_into_each_machine() {
        let names = MOST / BLOCK * 230;
        assert_eq!(memory(512, MOST + names, MOST), 1024);
    }
}
