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
use fs_err as fs;
use guest_init::{Console, Frame, Message, acknowledgement, to_bytes};

use super::{Process, Run, ends_with_this_process, initramfs, timed_out};
use crate::programs::Program;

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
    let archive = unnamed_file(&initramfs::archive(run, init)?)?;
    let mut once = || -> Result<_> {
        let (program, arguments) = run.plan.qemu.split_first().context("the plan names no QEMU")?;
        let mut qemu = ends_with_this_process(program);
        qemu.args(arguments).arg("-initrd");
        qemu.arg(format!("/proc/{}/fd/{}", process::id(), archive.as_raw_fd()));
        let mut guest = Process(qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
        let output = guest.0.stdout.take().context("QEMU has no output")?;
        let input = guest.0.stdin.take().context("QEMU has no input")?;
        Ok(listen(run, input, &read_in_thread(output), &mut ended))
    };
    let mut outcome = once()?;
    if let Err(Failure { text, may_retry: true }) = &outcome {
        eprintln!("xtask runner: {text}\nxtask runner: booting again");
        outcome = once()?;
    }
    outcome.map_err(|failure| anyhow!(failure.text))
}

/// A file that disappears with this process.
fn unnamed_file(bytes: &[u8]) -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("vdso-time-initramfs-{}", process::id()));
    fs::write(&path, bytes)?;
    let file = fs::File::open(&path)?;
    fs::remove_file(&path)?;
    Ok(file.into_parts().0)
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
                // A closed output is no failure: its reader has seen enough.
                Message::Out(text) => drop((&run.out).write_all(&to_bytes(&text))),
                Message::Err(text) => drop((&run.err).write_all(&to_bytes(&text))),
                Message::Ended(code) => {
                    if let Some(program) = programs.next() {
                        ended(program, code);
                    }
                    deadline = Instant::now() + run.limit;
                }
                Message::End => {
                    let Some(program) = programs.next() else { return Ok(()) };
                    let text = format!("{}: did not run", program.path);
                    return Err(Failure { text, may_retry: false });
                }
            }
        }
        let program = programs.as_slice().first().map_or("init", |program| &program.path);
        let (what, has_ended) = match bytes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(more) => {
                console.push(&more);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => (timed_out(program, run.limit), false),
            Err(RecvTimeoutError::Disconnected) => (format!("{program}: QEMU ended"), true),
        };
        let state = if next > 0 { "" } else { "; init did not start" };
        let text = format!("{what}{state}. The kernel's last lines:\n  {}", last_lines(&console.messages()));
        return Err(Failure { text, may_retry: has_ended && next == 0 });
    }
}

/// The kernel's last lines, indented but for the first.
fn last_lines(messages: &str) -> String {
    let lines: Vec<&str> = messages.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Plan;
    use super::*;

    struct Outcome {
        result: Result<(), Failure>,
        codes: Vec<u8>,
        acknowledged: String,
    }

    /// The outcome of a boot with the program `/p`, whose console sends these bytes and then ends,
    /// or stays silent.
    fn outcome(bytes: Vec<u8>, ends: bool) -> Outcome {
        let (sender, receiver) = channel();
        sender.send(bytes).unwrap();
        let sender = Some(sender).filter(|_| !ends);
        let programs = [Program { name: String::new(), path: "/p".into(), arguments: Vec::new() }];
        let plan = Plan::default();
        let limit = if ends { Duration::from_secs(60) } else { Duration::ZERO };
        let run = Run { limit, ..Run::new(&plan, &programs).unwrap() };
        let (mut codes, mut input) = (Vec::new(), Vec::new());
        let result = listen(&run, &mut input, &receiver, |_, code| codes.push(code));
        drop(sender);
        let acknowledged = String::from_utf8(input).unwrap().replace("ack ", "").replace('\n', "");
        Outcome { result, codes, acknowledged }
    }

    fn frames() -> [Vec<u8>; 3] {
        let mut number = 0..;
        [Message::Hello, Message::Ended(3), Message::End]
            .map(|message| Frame(number.next().unwrap(), message).encode().into())
    }

    #[test]
    fn a_repeated_frame_counts_once_and_is_acknowledged_again() {
        let [hello, ended, end] = frames();
        for (sent, acknowledged) in [
            (frames().concat(), "012"),
            ([hello.clone(), ended.clone(), ended.clone(), hello, ended, end].concat(), "011012"),
        ] {
            let outcome = outcome(sent, true);
            assert_eq!((outcome.result, outcome.codes), (Ok(()), vec![3]));
            assert_eq!(outcome.acknowledged, acknowledged);
        }
    }

    #[test]
    fn a_lost_frame_is_not_acknowledged_and_the_boot_fails() {
        for lost in 0..frames().len() {
            let mut sent = frames().to_vec();
            sent.remove(lost);
            let outcome = outcome(sent.concat(), true);
            assert!(outcome.result.is_err(), "frame {lost}");
            assert_eq!(outcome.acknowledged, "012"[..lost]);
        }
    }

    #[test]
    fn an_error_names_the_program_and_how_far_the_boot_came() {
        let [hello, ..] = frames();
        let end = Frame(1, Message::End).encode().into();
        let panic = "Kernel panic - not syncing: no init";
        let lines = "The kernel's last lines:\n  ";
        for (sent, ends, may_retry, text) in [
            ([hello.clone(), end].concat(), true, false, "/p: did not run".into()),
            (hello.clone(), true, false, format!("/p: QEMU ended. {lines}")),
            (hello, false, false, format!("{}. {lines}", timed_out("/p", Duration::ZERO))),
            (panic.into(), true, true, format!("/p: QEMU ended; init did not start. {lines}{panic}")),
        ] {
            assert_eq!(outcome(sent, ends).result, Err(Failure { text, may_retry }));
        }
    }
}
