//! The process that is watched.

use std::ffi::{CString, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::ptr;
use std::sync::mpsc::SyncSender;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{ForkResult, Pid, fork};

use crate::error::{Error, Result, ended, not_started};
use crate::guard::{Guard, wait_for};
use crate::proc;

/// The process that is watched. Dropping a `Target` kills a command that has not started to run.
pub(crate) struct Target {
    pub(crate) pid: u32,
    /// The name of the program, if the process is a command that this program started.
    program: Option<String>,
    /// The parent's end of a pair of sockets. On the other end, the command's process waits for a
    /// byte before it executes its program. While there is a gate, dropping the target kills the
    /// command, so the gate is removed once the program runs. None for a process that this program
    /// did not start.
    pub(crate) gate: Option<UnixStream>,
    pub(crate) guard: Option<Guard>,
}

impl Target {
    /// Watches a running process. Rejects the id of a thread, because the kernel's records carry
    /// the id of the process.
    pub(crate) fn attach(pid: u32) -> Result<Self> {
        if let Some(process) = proc::status(pid, "Tgid") {
            if process != pid.to_string() {
                let what = format!("{pid} is a thread of process {process}: use --pid {process}");
                return Err(what.into());
            }
        }
        Ok(Self {
            pid,
            program: None,
            gate: None,
            guard: None,
        })
    }

    /// Forks a process for a command. The new process waits for [`Self::go`] before it executes the
    /// program of the command. The program ignores the signals that `vdso-who` ignored when
    /// `vdso-who` was started, for example after `vdso-who COMMAND &` in a script.
    #[allow(unsafe_code, reason = "a child waits before it executes its program")]
    pub(crate) fn start(words: &[OsString], ignored: &[Signal]) -> Result<Self> {
        let program = words.first().map(|word| word.to_string_lossy().into());
        let mut strings = Vec::new();
        for word in words {
            strings.push(CString::new(word.as_bytes())?);
        }
        let mut arguments: Vec<_> = strings.iter().map(|word| word.as_ptr()).collect();
        arguments.push(ptr::null());
        let (gate, end) = UnixStream::pair()?;
        // SAFETY: until it executes the program, the child makes system calls only. It allocates
        // nothing and takes no lock, because a lock that another thread held during the fork would
        // stay locked in the child.
        match unsafe { fork() }.map_err(not_started)? {
            ForkResult::Child => {
                // `gate` is the parent's end. If the child kept it open as well, the child's read
                // from `end` would not return when the parent ends.
                drop(gate);
                execute_later(end, &arguments, ignored)
            }
            ForkResult::Parent { child } => Ok(Self {
                pid: child.as_raw() as u32,
                program,
                gate: Some(gate),
                guard: None,
            }),
        }
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.pid as i32)
    }

    /// Lets a started command execute its program. If that succeeds, the kernel closes the
    /// command's end of the gate. If it fails, the command sends the number of the error through
    /// the gate.
    ///
    /// Only the breakpoints of `--exact` need a guard (see [`Guard`]). Without `--exact` the
    /// command is not guarded, because a guard traces the command, and a traced program gets no
    /// privileges from its setuid bit. A guarded command stops before the program's first
    /// instruction: see [`Self::executed`].
    pub(crate) fn go(&mut self, is_guarded: bool) -> Result<()> {
        let id = self.id();
        let Some(gate) = &mut self.gate else {
            return Ok(());
        };
        if is_guarded {
            self.guard = Some(Guard::start(id)?);
        }
        gate.write_all(&[0])?;
        let mut answer = Vec::new();
        gate.read_to_end(&mut answer)?;
        let number = answer.first_chunk().copied();
        // While there is a gate, dropping the target kills the command and waits for it. So the
        // gate is kept or removed, depending on the guard and on whether the command could execute
        // its program:
        //
        // - Executed, without a guard: the program runs now and must not be killed. The gate is
        //   removed.
        // - Executed, with a guard: the program has not begun to run yet. The gate is kept.
        // - Failed, without a guard: the command must still be waited for. The gate is kept.
        // - Failed, with a guard: the guard waits for the command. The gate is removed.
        if is_guarded == number.is_some() {
            self.gate = None;
        }
        match number {
            Some(number) => Err(self.not_executed(i32::from_ne_bytes(number))),
            None => Ok(()),
        }
    }

    fn not_executed(&self, number: i32) -> Error {
        let error = io::Error::from_raw_os_error(number);
        let program = self.program.as_deref().unwrap_or_default();
        let is_number = program.parse::<u32>().is_ok();
        if is_number {
            let hint = format!("to watch a process, use `vdso-who --pid {program}`");
            return format!("cannot run {program}: {error}: {hint}").into();
        }
        format!("cannot run {program}: {error}").into()
    }

    /// Returns a sender if a guarded command has executed a program since the last call. The
    /// program runs once the sender is dropped.
    pub(crate) fn executed(&mut self) -> Option<SyncSender<()>> {
        let executed = self.guard.as_ref()?.executed.as_ref()?;
        executed.try_recv().ok()
    }

    /// Lets a command run without breakpoints, because the measurement is over. Returns how many
    /// signals its guard has swallowed.
    pub(crate) fn release(&mut self) -> u64 {
        self.gate = None;
        let Some(guard) = &mut self.guard else {
            return 0;
        };
        guard.executed = None;
        guard.swallowed.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Returns whether the process has ended. A command without a guard stays a zombie, so that
    /// [`Self::wait`] can read its status.
    pub(crate) fn has_ended(&self) -> bool {
        if let Some(guard) = &self.guard {
            return guard.waiter.is_finished();
        }
        if !self.is_command() {
            // A running process cannot be read while no more files can be opened, or after it has
            // changed its user.
            return match proc::living_thread(self.pid) {
                Ok(_) => false,
                Err(error) => proc::means_that_it_ended(&error),
            };
        }
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.id()), flags) {
            Ok(status) => status.pid().is_some(),
            Err(_) => false,
        }
    }

    fn is_command(&self) -> bool {
        self.program.is_some()
    }

    /// Returns whether there is a command and it still runs.
    pub(crate) fn is_running(&self) -> bool {
        self.is_command() && !self.has_ended()
    }

    /// Waits for the command, and returns its status, or 128 plus the number of the signal that
    /// ended it. Sends SIGTERM once `terminates` returns true. Without a command, returns 0.
    pub(crate) fn wait(&mut self, terminates: impl Fn() -> bool) -> Result<u8> {
        while self.is_running() {
            if terminates() {
                // Sending the signal can fail, because the command may run as another user by now.
                let _ = kill(self.id(), Signal::SIGTERM);
                break;
            }
            sleep(Duration::from_millis(20));
        }
        if !self.is_command() {
            return Ok(0);
        }
        let status = match self.guard.take() {
            Some(guard) => guard.waiter.join().map_err(ended)??,
            None => wait_for(self.pid as i32, 0)?.1,
        };
        Ok(as_shells_do(status))
    }
}

/// Returns the status of a command as shells report it.
fn as_shells_do(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128 + signal as u8,
        (None, None) => 0,
    }
}

/// Waits, in the child, for a byte from the parent, and then executes the program. If that fails,
/// sends the number of the error to the parent.
#[allow(unsafe_code, reason = "a program is executed")]
fn execute_later(mut end: UnixStream, arguments: &[*const libc::c_char], ignored: &[Signal]) -> ! {
    if end.read_exact(&mut [0]).is_ok() {
        // Rust programs ignore SIGPIPE, but other programs expect its default action. SAFETY: the
        // default action runs no code of this program.
        let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
        for caught in ignored {
            // SAFETY: an ignored signal runs no code.
            let _ = unsafe { signal(*caught, SigHandler::SigIgn) };
        }
        // SAFETY: `start` passes pointers to C strings, and a null pointer after the last one.
        unsafe { libc::execvp(arguments[0], arguments.as_ptr()) };
    }
    let error = io::Error::last_os_error();
    let number = error.raw_os_error().unwrap_or(0);
    let _ = end.write_all(&number.to_ne_bytes());
    // SAFETY: this is a system call.
    unsafe { libc::_exit(127) }
}

impl Drop for Target {
    /// Kills a command that has not started to run.
    fn drop(&mut self) {
        if self.gate.is_some() {
            let _ = kill(self.id(), Signal::SIGKILL);
            let _ = wait_for(self.pid as i32, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::resource::{Resource, setrlimit};

    use super::*;
    use crate::common::{child, has_proc};

    /// Looks at a process while no more files can be opened.
    #[test]
    fn a_process_that_cannot_be_read_has_not_ended() {
        if !has_proc() {
            return;
        }
        child::forked(|| {
            let target = Target::attach(std::process::id()).unwrap();
            assert!(!target.has_ended());
            setrlimit(Resource::RLIMIT_NOFILE, 0, 0).unwrap();
            assert!(!target.has_ended());
        });
        let target = Target::attach((1 << 22) + 1).unwrap();
        assert!(target.has_ended(), "no process has this id");
    }
}
