//! One boot of a kernel in QEMU.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use fs_err as fs;
use guest_init::{Console, Kind, Status, acknowledgement};

use super::process_group::ProcessGroup;
use super::{Plan, Run, initramfs, timed_out};
use crate::programs::Program;

/// How many of the kernel's last lines an error shows.
const LAST_LINES: usize = 20;

#[derive(Debug, PartialEq)]
struct Failure {
    text: String,
    /// QEMU ended before init ran, as it does about once in fifty boots.
    may_retry: bool,
}

/// The vDSO image of the plan's kernel.
pub(crate) fn dump(plan: &Plan) -> Result<Vec<u8>> {
    let init = plan.init.as_ref().context("this machine has no kernel of its own")?;
    let image = boot(&Run::new(plan, &[])?, init, |_, _| {})?;
    ensure!(!image.is_empty(), "this kernel provides no vDSO");
    Ok(image)
}

/// Boots the kernel and runs the programs, or without programs returns the vDSO image.
pub(super) fn boot(run: &Run<'_>, init: &Path, mut ended: impl FnMut(&Program, Status)) -> Result<Vec<u8>> {
    let archive = unnamed_file(&initramfs::archive(run, init)?)?;
    let mut once = || -> Result<_> {
        let (program, arguments) = run.plan.qemu.split_first().context("the plan names no QEMU")?;
        let mut qemu = Command::new(program);
        qemu.args(arguments).arg("-initrd");
        qemu.arg(format!("/proc/{}/fd/{}", process::id(), archive.as_raw_fd()));
        let mut guest = ProcessGroup::start(qemu.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let output = guest.leader.stdout.take().context("QEMU has no output")?;
        let input = guest.leader.stdin.take().context("QEMU has no input")?;
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
    mut ended: impl FnMut(&Program, Status),
) -> Result<Vec<u8>, Failure> {
    let mut deadline = Instant::now() + run.limit;
    let mut console = Console::default();
    let mut image = Vec::new();
    let mut programs = run.programs.iter();
    // The number of the next frame. All earlier ones arrived, in order.
    let mut next = 0;
    loop {
        while let Some(frame) = console.next_frame() {
            if frame.number > next {
                continue;
            }
            // If QEMU has ended, the next read reports it.
            let _ = writeln!(input, "{}", acknowledgement(frame.number));
            if frame.number < next {
                continue;
            }
            next += 1;
            match frame.kind {
                Kind::Hello => deadline = Instant::now() + run.limit,
                // A closed output is no failure: its reader has seen enough.
                Kind::Out => drop((&run.out).write_all(&frame.payload)),
                Kind::Err => drop((&run.err).write_all(&frame.payload)),
                Kind::Image => image.extend(&frame.payload),
                Kind::Status => {
                    let status = Status::decode(&frame.payload);
                    let (Some(program), Some(status)) = (programs.next(), status) else {
                        let text = "init reported an unknown program".into();
                        return Err(Failure { text, may_retry: false });
                    };
                    ended(program, status);
                    deadline = Instant::now() + run.limit;
                }
                Kind::End => {
                    let Some(program) = programs.next() else { return Ok(image) };
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
        let text = describe(&what, next > 0, &console.messages());
        return Err(Failure { text, may_retry: has_ended && next == 0 });
    }
}

/// What happened, how far the boot came, and the kernel's last lines.
fn describe(what: &str, init_ran: bool, messages: &str) -> String {
    let state = match (messages.contains("Kernel panic"), init_ran) {
        (true, true) => "the kernel panicked",
        (true, false) => "the kernel panicked before it started init",
        (false, true) => "the kernel was running",
        (false, false) => "the kernel did not start init",
    };
    let lines: Vec<&str> = messages.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return format!("{what}; {state} and printed nothing");
    }
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ");
    format!("{what}; {state}. Its last lines:\n  {last}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use guest_init::Frame;

    use super::*;

    const STATUS: Status = Status { code: 3, millis: 9 };

    struct Outcome {
        result: Result<Vec<u8>, Failure>,
        statuses: Vec<Status>,
        acknowledged: String,
    }

    /// The outcome of a boot with the program `/p`, whose console sends these bytes and then ends,
    /// or stays silent.
    fn outcome(bytes: Vec<u8>, ends: bool) -> Outcome {
        let (sender, receiver) = channel();
        sender.send(bytes).unwrap();
        let sender = Some(sender).filter(|_| !ends);
        let programs = [Program { path: "/p".into(), folder: "/".into(), arguments: Vec::new() }];
        let plan = Plan::default();
        let limit = if ends { Duration::from_secs(60) } else { Duration::ZERO };
        let run = Run { limit, ..Run::new(&plan, &programs).unwrap() };
        let (mut statuses, mut input) = (Vec::new(), Vec::new());
        let result = listen(&run, &mut input, &receiver, |_, status| statuses.push(status));
        drop(sender);
        let acknowledged = String::from_utf8(input).unwrap().replace("ack ", "").replace('\n', "");
        Outcome { result, statuses, acknowledged }
    }

    fn frames() -> [Vec<u8>; 4] {
        let status = STATUS.encode().into_bytes();
        let mut number = 0..;
        [(Kind::Hello, vec![]), (Kind::Image, vec![7]), (Kind::Status, status), (Kind::End, vec![])]
            .map(|(kind, payload)| Frame { number: number.next().unwrap(), kind, payload }.encode())
    }

    #[test]
    fn a_repeated_frame_counts_once_and_is_acknowledged_again() {
        let [hello, image, status, end] = frames();
        for (sent, acknowledged) in [
            (frames().concat(), "0123"),
            ([hello, image.clone(), image.clone(), status.clone(), image, status, end].concat(), "0112123"),
        ] {
            let outcome = outcome(sent, true);
            assert_eq!((outcome.result.unwrap(), outcome.statuses), (vec![7], vec![STATUS]));
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
            assert_eq!(outcome.acknowledged, "0123"[..lost]);
        }
    }

    #[test]
    fn an_error_names_the_program_and_how_far_the_boot_came() {
        let [hello, ..] = frames();
        let end = Frame { number: 1, kind: Kind::End, payload: Vec::new() }.encode();
        let panic = "Kernel panic - not syncing: no init";
        let quiet = "the kernel was running and printed nothing";
        for (sent, ends, may_retry, text) in [
            ([hello.clone(), end].concat(), true, false, "/p: did not run".into()),
            (hello.clone(), true, false, format!("/p: QEMU ended; {quiet}")),
            (hello, false, false, format!("{}; {quiet}", timed_out("/p", Duration::ZERO))),
            (
                panic.into(),
                true,
                true,
                format!(
                    "/p: QEMU ended; the kernel panicked before it started init. Its last lines:\n  {panic}"
                ),
            ),
        ] {
            assert_eq!(outcome(sent, ends).result, Err(Failure { text, may_retry }));
        }
    }
}
