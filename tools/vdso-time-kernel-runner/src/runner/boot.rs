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

use super::{Process, Program, Run, ends_with_this_process, initramfs, timed_out};
use crate::protocol::{Console, Frame, Message, acknowledgement};
use crate::step;

/// How many of the kernel's last lines an error shows.
const LAST_LINES: usize = 20;

#[derive(Debug, PartialEq)]
struct Failure {
    text: String,
    /// QEMU ended before init ran, as it does about once in fifty boots.
    may_retry: bool,
}

/// Boots the kernel and runs the programs.
pub(super) fn boot(run: &Run<'_>, init: &Path, mut ended: impl FnMut(&Program, u8)) -> Result<()> {
    // A file in memory, so that no other user can prepare its name in /tmp.
    let mut archive = File::from(memfd_create("initramfs", MemfdFlags::CLOEXEC)?);
    archive.write_all(&initramfs::archive(run, init)?)?;
    let mut once = || -> Result<_> {
        let (program, arguments) = run
            .plan
            .qemu
            .split_first()
            .context("the plan names no QEMU")?;
        let mut qemu = ends_with_this_process(program);
        qemu.args(arguments).arg("-initrd");
        qemu.arg(format!(
            "/proc/{}/fd/{}",
            process::id(),
            archive.as_raw_fd()
        ));
        let mut guest = Process(qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
        let output = guest.0.stdout.take().context("QEMU has no output")?;
        let input = guest.0.stdin.take().context("QEMU has no input")?;
        Ok(listen(run, input, &read_in_thread(output), &mut ended))
    };
    let mut outcome = once()?;
    if let Err(Failure {
        text,
        may_retry: true,
    }) = &outcome
    {
        step(&format!("{text}\nbooting again"));
        outcome = once()?;
    }
    outcome.map_err(|failure| anyhow!(failure.text))
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

/// Reads the console to the end, and acknowledges each frame on QEMU's input.
fn listen(
    run: &Run<'_>,
    mut input: impl Write,
    bytes: &Receiver<Vec<u8>>,
    mut ended: impl FnMut(&Program, u8),
) -> Result<(), Failure> {
    let mut deadline = Instant::now() + run.limit;
    let mut console = Console::default();
    let mut programs = run.programs.iter();
    // The number of the next frame. All earlier ones arrived, in order.
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
            match message {
                Message::Hello => deadline = Instant::now() + run.limit,
                Message::Out(bytes) => write(&run.out, &bytes)?,
                Message::Err(bytes) => write(&run.err, &bytes)?,
                Message::Ended(code) => {
                    if let Some(program) = programs.next() {
                        ended(program, code);
                    }
                    deadline = Instant::now() + run.limit;
                }
                Message::End => {
                    let Some(program) = programs.next() else {
                        return Ok(());
                    };
                    let text = format!("{}: did not run", program.path);
                    return Err(Failure {
                        text,
                        may_retry: false,
                    });
                }
            }
        }
        let program = programs
            .as_slice()
            .first()
            .map_or("init", |program| &program.path);
        let (what, has_ended) =
            match bytes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(more) => {
                    console.push(&more);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => (timed_out(program, run.limit), false),
                Err(RecvTimeoutError::Disconnected) => (format!("{program}: QEMU ended"), true),
            };
        let state = if next > 0 { "" } else { "; init did not start" };
        let text = format!(
            "{what}{state}. The kernel's last lines:\n  {}",
            last_lines(&console.messages())
        );
        return Err(Failure {
            text,
            may_retry: has_ended && next == 0,
        });
    }
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

/// Returns the kernel's last lines, indented but for the first.
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
    use super::*;

    /// Lets the console of a boot with the program `/p` send these frames, or text, and end.
    /// Returns the result, the program's exit code, and the acknowledged frames.
    fn outcome(sent: &[&str]) -> (Result<(), Failure>, Vec<u8>, String) {
        let (sender, receiver) = channel();
        sender.send(sent.concat().into()).unwrap();
        drop(sender);
        let programs = [Program {
            name: String::new(),
            path: "/p".into(),
            arguments: Vec::new(),
        }];
        let plan = Plan::default();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = Run {
            limit: Duration::from_secs(60),
            out: full,
            ..Run::new(&plan, &programs).unwrap()
        };
        let (mut codes, mut input) = (Vec::new(), Vec::new());
        let result = listen(&run, &mut input, &receiver, |_, code| codes.push(code));
        (
            result,
            codes,
            String::from_utf8(input)
                .unwrap()
                .replace("ack ", "")
                .replace('\n', ""),
        )
    }

    #[test]
    fn each_frame_counts_once_and_an_error_names_how_far_the_boot_came() {
        let frame = |number, message| Frame(number, message).encode();
        let hello = &*frame(0, Message::Hello);
        let (ended, end) = (&*frame(1, Message::Ended(3)), &*frame(2, Message::End));
        let panic = "Kernel panic - not syncing: no init";
        let lines = "The kernel's last lines:\n  ";
        let no_program = frame(1, Message::End);
        for (sent, codes, acknowledged, failure) in [
            (&[hello, ended, end][..], &[3][..], "012", None),
            (
                &[hello, ended, ended, hello, ended, end],
                &[3],
                "011012",
                None,
            ),
            (
                &[ended, end],
                &[],
                "",
                Some((true, format!("/p: QEMU ended; init did not start. {lines}"))),
            ),
            (
                &[hello, &frame(1, Message::Out("said".into())), end],
                &[],
                "01",
                Some((
                    false,
                    "cannot write the program's output: No space left on device (os error 28)"
                        .into(),
                )),
            ),
            (
                &[hello, end],
                &[],
                "0",
                Some((false, format!("/p: QEMU ended. {lines}"))),
            ),
            (
                &[hello, &no_program],
                &[],
                "01",
                Some((false, "/p: did not run".into())),
            ),
            (
                &[panic],
                &[],
                "",
                Some((
                    true,
                    format!("/p: QEMU ended; init did not start. {lines}{panic}"),
                )),
            ),
        ] {
            let result =
                failure.map_or(Ok(()), |(may_retry, text)| Err(Failure { text, may_retry }));
            assert_eq!(outcome(sent), (result, codes.to_vec(), acknowledged.into()));
        }
    }
}
