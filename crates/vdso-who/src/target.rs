//! The process that is watched.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::{ForkResult, Pid, fork};

use crate::guard::{Guard, wait_for};
use crate::{Result, proc};

/// The process that is watched. A command that did not start to run is killed with this.
#[derive(Debug)]
pub struct Target {
    pub(crate) pid: u32,
    /// Whether this program started it.
    is_command: bool,
    /// The command's process waits for a byte from here before it executes its program. None when
    /// the program runs.
    gate: Option<UnixStream>,
    pub(crate) guard: Option<Guard>,
    /// When the process ended.
    pub(crate) ended: Arc<OnceLock<Instant>>,
}

impl Target {
    /// Takes a running process. Records carry its number, so that of a thread is refused.
    pub(crate) fn attach(pid: u32) -> Result<Self> {
        match proc::status(pid, "Tgid") {
            Some(process) if process != pid.to_string() => {
                Err(format!("{pid} is a thread of process {process}: use --pid {process}").into())
            }
            _ => Ok(Self { pid, is_command: false, gate: None, guard: None, ended: note_end(pid) }),
        }
    }

    /// Starts a command, which waits for [`Self::go`]. It is traced only if its reads are counted:
    /// a traced program has no rights from its setuid bit.
    #[allow(unsafe_code, reason = "a child waits before it executes its program")]
    pub(crate) fn start(words: &[OsString], is_traced: bool) -> Result<Self> {
        let (program, arguments) = words.split_first().ok_or("there is no command")?;
        let mut command = Command::new(program);
        command.args(arguments);
        let (gate, mut end) = UnixStream::pair()?;
        // SAFETY: the child takes two locks: the allocator's, which the C library frees in fork(2),
        // and that of the environment, which `Command::spawn` takes in its child, too.
        if let ForkResult::Parent { child } = unsafe { fork() }? {
            drop(end);
            let pid = child.as_raw() as u32;
            let ended = note_end(pid);
            let mut target = Self { pid, is_command: true, gate: Some(gate), guard: None, ended };
            if is_traced {
                target.execute()?;
                waitpid(child, None)?;
            }
            return Ok(target);
        }
        drop(gate);
        let traced = if is_traced { ptrace::traceme() } else { Ok(()) };
        let ready = traced.map_err(io::Error::from).and_then(|()| end.read_exact(&mut [0]));
        let error = ready.err().unwrap_or_else(|| command.exec());
        let _ = write!(end, "cannot run {}: {error}", program.to_string_lossy());
        // SAFETY: this is a system call.
        unsafe { libc::_exit(127) }
    }

    /// Lets a command execute its program, which closes the other end of the gate.
    fn execute(&mut self) -> Result<()> {
        let Some(gate) = &mut self.gate else { return Ok(()) };
        gate.write_all(&[0])?;
        let mut error = String::new();
        gate.read_to_string(&mut error)?;
        if error.is_empty() { Ok(()) } else { Err(error.into()) }
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.pid as i32)
    }

    /// Lets a started command run; guarded, if its reads are counted.
    pub(crate) fn go(&mut self, is_guarded: bool) -> Result<()> {
        if self.gate.is_some() && is_guarded {
            // The guard is another thread, and only the tracer's thread can continue the process.
            ptrace::detach(self.id(), Signal::SIGSTOP)?;
            waitpid(self.id(), Some(WaitPidFlag::WUNTRACED))?;
            self.guard = Some(Guard::start(self.id())?);
        } else {
            self.execute()?;
        }
        self.gate = None;
        Ok(())
    }

    /// Whether the process ended. A command stays a zombie.
    pub(crate) fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match (&self.guard, self.is_command) {
            (Some(guard), _) => guard.waiter.is_finished(),
            (_, true) => waitid(Id::Pid(self.id()), flags).is_ok_and(|status| status.pid().is_some()),
            _ => proc::living_thread(self.pid).is_err(),
        }
    }

    /// The CPU time of all threads, and of those that ended.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        clock_getcpuclockid(self.id()).and_then(ClockId::now).ok().map(Duration::from)
    }

    /// Returns whether there is a command and it still runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_command && !self.has_ended()
    }

    /// Waits for the command, and returns its status, or 128 and the number of the signal that
    /// ended it. `terminates` sends SIGTERM first. Without a command, returns 0.
    ///
    /// # Errors
    /// If the kernel does not know the command.
    pub fn wait(&mut self, terminates: bool) -> Result<u8> {
        if terminates && self.is_running() {
            kill(self.id(), Signal::SIGTERM)?;
        }
        if !self.is_command {
            return Ok(0);
        }
        let status = match self.guard.take() {
            Some(guard) => guard.waiter.join().map_err(|_| "the guard ended")??,
            None => wait_for(self.pid as i32, 0)?.1,
        };
        Ok(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or_default() as u8)
    }
}

/// Another thread notes here when a process ends. It stays empty before Linux 5.3.
#[allow(unsafe_code, reason = "nix has no pidfd_open(2)")]
fn note_end(pid: u32) -> Arc<OnceLock<Instant>> {
    let ended = Arc::<OnceLock<_>>::default();
    let noted = ended.clone();
    thread::spawn(move || {
        // SAFETY: this system call takes two numbers.
        let file = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
        // SAFETY: the file was opened here, and nothing else owns it.
        let process = unsafe { OwnedFd::from_raw_fd(file as i32) };
        let mut ready = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        while poll(&mut ready, PollTimeout::NONE) == Err(Errno::EINTR) {}
        let _ = noted.set(Instant::now());
        Ok::<_, Errno>(())
    });
    ended
}

impl Drop for Target {
    /// A command that did not run is not left.
    fn drop(&mut self) {
        if self.gate.is_some() {
            let _ = kill(self.id(), Signal::SIGKILL);
            let _ = wait_for(self.pid as i32, 0);
        }
    }
}
