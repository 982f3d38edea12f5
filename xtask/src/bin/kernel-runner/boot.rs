//! One boot: QEMU is started, its console read to the end, and what came of it told.

use std::env;
use std::fs;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::initramfs;
use crate::plan::Plan;
use crate::protocol::{Console, Kind, Status, Task};

pub(crate) const TIMEOUT_VARIABLE: &str = "VDSO_TIME_GUEST_TIMEOUT";
const TIMEOUT: u64 = 120;
const GRACE: Duration = Duration::from_secs(10);

/// The kernel's last lines that an error shows.
const LAST_LINES: usize = 20;

/// Why there is no outcome.
#[derive(Debug)]
enum Trouble {
    BeforeInit(String),
    Later(String),
}

/// QEMU, and the archive it reads. Neither outlives this.
struct Guest {
    qemu: Child,
    initramfs: PathBuf,
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself, and the file may be gone.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        let _ = fs::remove_file(&self.initramfs);
    }
}

/// Boots the plan's kernel, which does the tasks; all that the programs say is passed on as it comes, and `ended` hears
/// of each. Gives the bytes of the vDSO, if they were asked for.
pub(crate) fn boot(
    plan: &Plan,
    programs: &[String],
    mut tasks: Vec<Task>,
    mut ended: impl FnMut(Status),
) -> Result<Vec<u8>, String> {
    let timeout = timeout()?;
    // Should this process be killed, the guest still ends by itself.
    let deadline = Task::Deadline((timeout + GRACE).as_secs());
    tasks.splice(..0, plan.clock.map(Task::Clock).into_iter().chain([deadline]));
    let archive = initramfs::archive(&plan.init, programs, &tasks)?;
    let mut once = || -> Result<_, String> {
        let mut guest = start(plan, &archive)?;
        let console = guest.qemu.stdout.take().ok_or("QEMU has no output")?;
        Ok(listen(&read(console), timeout, &mut ended))
    };
    match once()? {
        // One boot in some dozens ends so, by a fault of the emulation, and no program has run yet.
        Err(Trouble::BeforeInit(text)) => {
            eprintln!("kernel-runner: {text}\nkernel-runner: once more");
            once()?
        }
        outcome => outcome,
    }
    .map_err(|(Trouble::BeforeInit(text) | Trouble::Later(text))| text)
}

fn timeout() -> Result<Duration, String> {
    let Ok(text) = env::var(TIMEOUT_VARIABLE) else { return Ok(Duration::from_secs(TIMEOUT)) };
    text.parse()
        .map(Duration::from_secs)
        .map_err(|_| format!("{TIMEOUT_VARIABLE}={text} is no number of seconds"))
}

fn start(plan: &Plan, archive: &[u8]) -> Result<Guest, String> {
    let initramfs = env::temp_dir().join(format!("vdso-time-initramfs-{}", process::id()));
    fs::write(&initramfs, archive).map_err(|error| format!("{}: {error}", initramfs.display()))?;
    let (program, arguments) = plan.qemu.split_first().ok_or("the plan names no QEMU")?;
    let mut command = Command::new(program);
    command.args(arguments).arg("-initrd").arg(&initramfs);
    match command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
        Ok(qemu) => Ok(Guest { qemu, initramfs }),
        Err(error) => {
            let _ = fs::remove_file(&initramfs); // the other error is the one to tell
            Err(format!("{program}: {error}"))
        }
    }
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

fn listen(
    bytes: &Receiver<Vec<u8>>,
    timeout: Duration,
    mut ended: impl FnMut(Status),
) -> Result<Vec<u8>, Trouble> {
    let deadline = Instant::now() + timeout;
    let mut console = Console::default();
    let mut image = Vec::new();
    let mut alive = false;
    loop {
        while let Some((kind, payload)) = console.next() {
            match kind {
                Kind::Hello => alive = true,
                // Who closed our output has seen enough; the status still counts.
                Kind::Out => drop(io::stdout().write_all(&payload).and_then(|()| io::stdout().flush())),
                Kind::Err => drop(io::stderr().write_all(&payload)),
                Kind::Status => Status::decode(&payload).into_iter().for_each(&mut ended),
                Kind::Image => image.extend(payload),
                Kind::End => return Ok(image),
            }
        }
        match bytes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(more) => console.push(&more),
            Err(RecvTimeoutError::Timeout) => {
                let seconds = timeout.as_secs();
                let what = format!("no end after {seconds} s; {TIMEOUT_VARIABLE} can allow more");
                return Err(Trouble::Later(describe(&what, alive, &console.noise)));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let text = describe("QEMU ended", alive, &console.noise);
                return Err(if alive { Trouble::Later(text) } else { Trouble::BeforeInit(text) });
            }
        }
    }
}

/// What happened, how far it had come, and what the kernel said.
fn describe(what: &str, alive: bool, noise: &str) -> String {
    let state = match (noise.contains("Kernel panic"), alive) {
        (true, true) => "the kernel panicked",
        (true, false) => "the kernel panicked before it ran init",
        (false, true) => "the programs had not ended",
        (false, false) => "the kernel did not come to run init",
    };
    let lines: Vec<&str> = noise.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    let said = if last.is_empty() { "The console was silent." } else { "The console's last lines:" };
    let mut text = format!("{what}: {state}. {said}");
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

    use super::{Trouble, describe, listen};
    use crate::protocol::{Kind, Status, frame};

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_boot_to_the_end() {
        let (send, bytes) = channel();
        let status = Status { code: 3, millis: 9 };
        for frame in [
            b"Booting\r\n".to_vec(),
            frame(Kind::Hello, b""),
            frame(Kind::Image, b"\x7fELF"),
            frame(Kind::Status, status.encode().as_bytes()),
            frame(Kind::End, b""),
        ] {
            send.send(frame).unwrap();
        }
        let mut statuses = Vec::new();
        let image = listen(&bytes, LONG, |status| statuses.push(status)).unwrap();
        assert_eq!((statuses, image), (vec![status], b"\x7fELF".to_vec()));
    }

    #[test]
    fn an_end_too_soon() {
        let (send, bytes) = channel();
        send.send(b"Kernel panic - not syncing: no init\r\n".to_vec()).unwrap();
        drop(send);
        let Err(Trouble::BeforeInit(error)) = listen(&bytes, LONG, |_| {}) else { panic!("it booted") };
        assert!(error.contains("panicked before it ran init"), "{error}");
        assert!(error.ends_with("\n  Kernel panic - not syncing: no init"), "{error}");

        let (_send, bytes) = channel();
        let Err(Trouble::Later(error)) = listen(&bytes, Duration::ZERO, |_| {}) else { panic!("it booted") };
        assert!(error.contains("after 0 s") && error.contains("did not come to run init"), "{error}");
        assert!(describe("x", true, "").contains("had not ended"));
    }
}
