//! The process that is watched.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command};
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

use crate::guard::Guard;
use crate::{Result, proc};

/// The process that is watched. A command that did not start to run is killed with this.
#[derive(Debug)]
pub struct Target {
    pub(crate) pid: u32,
    /// The command, if this program started it.
    child: Option<Child>,
    /// Whether the command is still stopped.
    is_stopped: bool,
    pub(crate) guard: Option<Guard>,
}

impl Target {
    /// Takes a running process. Records carry its number, so that of a thread is refused.
    pub(crate) fn attach(pid: u32) -> Result<Self> {
        match proc::status(pid, "Tgid") {
            Some(process) if process != pid.to_string() => {
                Err(format!("{pid} is a thread of process {process}: use --pid {process}").into())
            }
            _ => Ok(Self { pid, child: None, is_stopped: false, guard: None }),
        }
    }

    /// Starts a command, which stops before its first instruction.
    #[allow(unsafe_code, reason = "the child asks for a stop at execve(2)")]
    pub(crate) fn start(words: &[OsString]) -> Result<Self> {
        let program = words.first().ok_or("there is no command")?;
        let mut command = Command::new(program);
        command.args(&words[1..]);
        // SAFETY: `traceme` makes one system call and takes no lock.
        unsafe { command.pre_exec(|| Ok(ptrace::traceme()?)) };
        let name = program.to_string_lossy();
        let child = command.spawn().map_err(|error| format!("cannot run {name}: {error}"))?;
        let target = Self { pid: child.id(), child: Some(child), is_stopped: true, guard: None };
        match waitpid(target.id(), None)? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => Ok(target),
            status => Err(format!("{name} did not start: {status:?}").into()),
        }
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.pid as i32)
    }

    /// Lets a started command run; guarded, if its reads are counted.
    pub(crate) fn go(&mut self, is_guarded: bool) -> Result<()> {
        if !std::mem::take(&mut self.is_stopped) {
            return Ok(());
        }
        // The guard is another thread, and only the tracer's thread can continue the process.
        ptrace::detach(self.id(), is_guarded.then_some(Signal::SIGSTOP))?;
        if is_guarded {
            waitpid(self.id(), Some(WaitPidFlag::WUNTRACED))?;
            self.guard = Some(Guard::start(self.id())?);
        }
        Ok(())
    }

    /// Whether the process ended. A command stays a zombie.
    pub(crate) fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match (&self.guard, &self.child) {
            (Some(guard), _) => guard.waiter.is_finished(),
            (_, Some(_)) => waitid(Id::Pid(self.id()), flags).is_ok_and(|status| status.pid().is_some()),
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
        self.child.is_some() && !self.has_ended()
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
        let Some(child) = &mut self.child else { return Ok(0) };
        let status = match self.guard.take() {
            Some(guard) => guard.waiter.join().map_err(|_| "the guard ended")??,
            None => child.wait()?,
        };
        Ok(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or_default() as u8)
    }
}

impl Drop for Target {
    /// A command that did not run is not left stopped.
    fn drop(&mut self) {
        if let (true, Some(child)) = (self.is_stopped, &mut self.child) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
