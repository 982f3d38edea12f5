//! One boot: QEMU is started, its console read to the end, and what came of it told.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd as _;
use std::process::{self, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Run;
use crate::group::Group;
use crate::initramfs;
use crate::limit::{exceeded, limit};
use crate::plan::Plan;
use crate::protocol::{Console, Kind, Status, Task, acknowledgement};

/// The kernel's last lines that an error shows.
const LAST_LINES: usize = 20;

/// Why there is no outcome.
#[derive(Debug)]
enum Trouble {
    BeforeInit(String),
    Later(String),
}

/// Boots the plan's kernel, which does the tasks and then runs the programs. All that they say is
/// passed on as it comes, and `ended` hears of each. Gives the bytes of the vDSO, if a task asks.
pub(crate) fn boot(
    plan: &Plan,
    init: &str,
    runs: &[Run],
    tasks: Vec<Task>,
    mut ended: impl FnMut(&Run, Status),
) -> Result<Vec<u8>, String> {
    let limit = limit()?;
    let clock = plan.clock.map(Task::Clock).into_iter();
    let tasks: Vec<Task> = clock.chain(tasks).chain(runs.iter().flat_map(Run::tasks)).collect();
    let archive = initramfs::archive(init, runs, &tasks)?;
    let mut once = || -> Result<_, String> {
        let (_file, path) = unnamed(&archive)?;
        let mut guest = start(plan, &path)?;
        let console = guest.leader.stdout.take().ok_or("QEMU has no output")?;
        let answers = guest.leader.stdin.take().ok_or("QEMU has no input")?;
        Ok(Session { answers, limit, runs }.listen(&read(console), &mut ended))
    };
    match once()? {
        // One boot in some dozens ends so, by a fault of the emulation, and no program has run yet.
        Err(Trouble::BeforeInit(text)) => {
            eprintln!("place-runner: {text}\nplace-runner: once more");
            once()?
        }
        outcome => outcome,
    }
    .map_err(|(Trouble::BeforeInit(text) | Trouble::Later(text))| text)
}

/// A file that is gone when this process is, and a path by which QEMU finds it.
fn unnamed(bytes: &[u8]) -> Result<(File, String), String> {
    let path = std::env::temp_dir().join(format!("vdso-time-initramfs-{}", process::id()));
    let make = || {
        fs::write(&path, bytes)?;
        let file = File::open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    };
    let file = make().map_err(|error: io::Error| format!("{}: {error}", path.display()))?;
    let path = format!("/proc/{}/fd/{}", process::id(), file.as_raw_fd());
    Ok((file, path))
}

fn start(plan: &Plan, initramfs: &str) -> Result<Group, String> {
    let (program, arguments) = plan.qemu.split_first().ok_or("the plan names no QEMU")?;
    let mut command = Command::new(program);
    command.args(arguments).args(["-initrd", initramfs]);
    Group::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
}

/// What comes from the console, read in a thread of its own so that waiting can end.
fn read(mut console: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 1 << 12];
        while let Ok(length @ 1..) = console.read(&mut buffer) {
            if send.send(buffer[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    receive
}

/// The runner's end of the console.
struct Session<'a, W> {
    answers: W,
    /// The time that the boot may take up to its first program, and each program.
    limit: Duration,
    runs: &'a [Run],
}

impl<W: Write> Session<'_, W> {
    fn listen(
        &mut self,
        bytes: &Receiver<Vec<u8>>,
        mut ended: impl FnMut(&Run, Status),
    ) -> Result<Vec<u8>, Trouble> {
        let mut deadline = Instant::now() + self.limit;
        let mut console = Console::default();
        let mut image = Vec::new();
        let mut runs = self.runs.iter();
        // The number of the next frame. All before it have come, in their order.
        let mut next = 0;
        loop {
            while let Some(frame) = console.next() {
                let is_new = frame.number == next;
                if is_new {
                    next += 1;
                    match frame.kind {
                        Kind::Hello => deadline = Instant::now() + self.limit,
                        // Who closed our output has seen enough; the status still counts.
                        Kind::Out => pass_on(io::stdout(), &frame.payload),
                        Kind::Err => pass_on(io::stderr(), &frame.payload),
                        Kind::Image => image.extend(&frame.payload),
                        Kind::Status => {
                            let status = Status::decode(&frame.payload);
                            let (Some(run), Some(status)) = (runs.next(), status) else {
                                return Err(Trouble::Later("init told of an unknown program".into()));
                            };
                            ended(run, status);
                            deadline = Instant::now() + self.limit;
                        }
                        Kind::End => {
                            return match runs.next() {
                                None => Ok(image),
                                Some(run) => Err(Trouble::Later(format!("{}: not run", run.program))),
                            };
                        }
                    }
                }
                if frame.number < next {
                    // QEMU may have ended; reading tells.
                    let _ = self.answers.write_all(acknowledgement(frame.number).as_bytes());
                }
            }
            let program = runs.as_slice().first().map_or("init", |run| &run.program);
            let alive = next > 0;
            match bytes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(more) => console.push(&more),
                Err(RecvTimeoutError::Timeout) => {
                    let what = exceeded(program, self.limit);
                    return Err(Trouble::Later(describe(&what, alive, &console.noise)));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let text = describe(&format!("{program}: QEMU ended"), alive, &console.noise);
                    return Err(if alive { Trouble::Later(text) } else { Trouble::BeforeInit(text) });
                }
            }
        }
    }
}

fn pass_on(mut to: impl Write, bytes: &[u8]) {
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}

/// What happened, how far it had come, and what the kernel said.
fn describe(what: &str, alive: bool, noise: &str) -> String {
    let state = match (noise.contains("Kernel panic"), alive) {
        (true, true) => "the kernel panicked",
        (true, false) => "the kernel panicked before it ran init",
        (false, true) => "the kernel ran",
        (false, false) => "the kernel did not come to run init",
    };
    let lines: Vec<&str> = noise.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    let said = if last.is_empty() { "The console was silent." } else { "The console's last lines:" };
    let mut text = format!("{what}; {state}. {said}");
    for line in last {
        text.push_str("\n  ");
        text.push_str(line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::{Session, Trouble};
    use crate::Run;
    use crate::protocol::{Frame, Kind, Status, acknowledgement};

    const LONG: Duration = Duration::from_secs(60);

    /// What comes of a boot with one program whose console gives these bytes and then ends, with
    /// the statuses and the answers.
    fn outcome(bytes: Vec<u8>) -> (Result<Vec<u8>, Trouble>, Vec<Status>, String) {
        let (send, receive) = channel();
        send.send(bytes).unwrap();
        drop(send);
        let runs = [Run { program: "/p".into(), arguments: Vec::new() }];
        let mut statuses = Vec::new();
        let mut session = Session { answers: Vec::new(), limit: LONG, runs: &runs };
        let result = session.listen(&receive, |_, status| statuses.push(status));
        (result, statuses, String::from_utf8(session.answers).unwrap())
    }

    const STATUS: Status = Status { code: 3, millis: 9 };

    fn frames() -> [Vec<u8>; 4] {
        let status = STATUS.encode().into_bytes();
        let said = [
            (Kind::Hello, Vec::new()),
            (Kind::Image, b"\x7fELF".to_vec()),
            (Kind::Status, status),
            (Kind::End, Vec::new()),
        ];
        let mut number = 0..;
        said.map(|(kind, payload)| Frame { number: number.next().unwrap(), kind, payload }.encode())
    }

    #[test]
    fn a_boot_to_the_end() {
        let (result, statuses, answers) = outcome(frames().concat());
        assert_eq!((result.unwrap(), statuses), (b"\x7fELF".to_vec(), vec![STATUS]));
        assert_eq!(answers, [0, 1, 2].map(acknowledgement).concat());
    }

    #[test]
    fn a_frame_that_is_repeated_counts_once_and_is_acknowledged_again() {
        let [hello, image, status, end] = frames();
        let repeated = [hello, image.clone(), image.clone(), status.clone(), image, status, end];
        let (result, statuses, answers) = outcome(repeated.concat());
        assert_eq!((result.unwrap(), statuses), (b"\x7fELF".to_vec(), vec![STATUS]));
        assert_eq!(answers, [0, 1, 1, 2, 1, 2].map(acknowledgement).concat());
    }

    #[test]
    fn a_lost_frame_is_not_acknowledged_and_makes_no_good_end() {
        for lost in 0..frames().len() {
            let mut sent = frames().to_vec();
            sent.remove(lost);
            let (result, _, answers) = outcome(sent.concat());
            assert!(result.is_err(), "frame {lost}");
            assert_eq!(answers.lines().count(), lost, "{answers}");
        }
    }

    #[test]
    fn an_end_before_all_programs_have_run_is_an_error() {
        let [hello, ..] = frames();
        let end = Frame { number: 1, kind: Kind::End, payload: Vec::new() }.encode();
        let (Err(Trouble::Later(error)), ..) = outcome([hello, end].concat()) else { panic!("a good end") };
        assert_eq!(error, "/p: not run");
    }

    #[test]
    fn an_end_too_soon_says_how_far_the_boot_had_come() {
        let (result, ..) = outcome(b"Kernel panic - not syncing: no init\r\n".to_vec());
        let Err(Trouble::BeforeInit(error)) = result else { panic!("it booted") };
        assert!(error.contains("panicked before it ran init"), "{error}");
        assert!(error.ends_with("\n  Kernel panic - not syncing: no init"), "{error}");
    }

    #[test]
    fn a_program_that_takes_too_long_is_named() {
        let (send, receive) = channel();
        send.send(frames()[0].clone()).unwrap();
        let runs = [Run { program: "/p".into(), arguments: Vec::new() }];
        let mut session = Session { answers: Vec::new(), limit: Duration::ZERO, runs: &runs };
        let Err(Trouble::Later(error)) = session.listen(&receive, |_, _| {}) else { panic!("a good end") };
        assert!(error.starts_with("/p: no end after 0 s; VDSO_TIME_GUEST_TIMEOUT=SECONDS"), "{error}");
    }
}
