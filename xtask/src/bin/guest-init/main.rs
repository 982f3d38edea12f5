//! `/init` of a guest: does the tasks that the kernel runner put beside it, and powers off.
//!
//! Built for the guest's programs, statically, by `cargo xtask on`; nothing else is in the guest.

#![allow(unsafe_code, reason = "libc's functions for what only the first process does; std has none")]

#[path = "../kernel-runner/protocol.rs"]
#[allow(dead_code, reason = "the runner uses the other half")]
mod protocol;

use std::ffi::{CString, c_char, c_int, c_long, c_ulong, c_void};
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::ptr;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use protocol::{Kind, LONGEST, Status, TASKS, Task};

unsafe extern "C" {
    fn mount(
        source: *const c_char,
        to: *const c_char,
        kind: *const c_char,
        flags: c_ulong,
        data: *const c_void,
    ) -> c_int;
    fn reboot(how: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn tcgetattr(file: c_int, settings: *mut Terminal) -> c_int;
    fn cfmakeraw(settings: *mut Terminal);
    fn tcsetattr(file: c_int, when: c_int, settings: *const Terminal) -> c_int;
    fn tcdrain(file: c_int) -> c_int;
}

/// Holds a `struct termios` of any architecture, 60 bytes; what is in it is libc's business.
#[repr(C, align(8))]
struct Terminal([u8; 256]);

const POWER_OFF: c_int = 0x4321_fedc;
const CONSOLE: c_int = 1;

/// clock_settime with a 64-bit time.
const CLOCK_SETTIME: c_long = if cfg!(target_pointer_width = "32") {
    404
} else if cfg!(target_arch = "aarch64") {
    112
} else {
    227
};

/// A program that has ended is silent for good when it was silent for so long: a child that it left behind may hold the
/// pipe. A slow console writes a part of its output in much less.
const SILENCE: Duration = Duration::from_secs(5);
const PART: usize = 1024;

/// The command found no program to run, as a shell says it.
const NOT_STARTED: u8 = 127;

fn main() {
    if let Err(error) = work() {
        say(Kind::Err, format!("guest-init: {error}\n").as_bytes());
    }
    say(Kind::End, &[]);
    // SAFETY: tcdrain(3) takes any number; init's standard output is the console.
    unsafe { tcdrain(CONSOLE) };
    power_off();
    // A machine that cannot do that ends with the kernel's panic when init leaves.
}

fn power_off() {
    // SAFETY: nothing is left to be saved: all files are in memory.
    unsafe { reboot(POWER_OFF) };
}

fn work() -> io::Result<()> {
    make_raw();
    say(Kind::Hello, &[]);
    for (kind, folder) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        fs::create_dir_all(folder)?;
        mount_at(kind, folder)?;
    }
    fs::create_dir_all("/tmp")?;
    // The console carries frames now: only a panic may come between.
    fs::write("/proc/sys/kernel/printk", "1")?;
    let tasks = protocol::decode(&fs::read_to_string(TASKS)?);
    let tasks = tasks.ok_or_else(|| io::Error::other(format!("{TASKS} is not understood")))?;

    let mut folder = "/".to_string();
    let mut variables = Vec::new();
    let mut rest = tasks.into_iter().peekable();
    while let Some(task) = rest.next() {
        match task {
            Task::Clock(seconds) => set_clock(seconds)?,
            Task::Deadline(seconds) => drop(thread::spawn(move || {
                thread::sleep(Duration::from_secs(seconds));
                power_off();
            })),
            Task::Folder(path) => folder = path,
            Task::Variable(variable) => variables.push(variable),
            Task::Dump => dump()?,
            Task::Argument(argument) => {
                return Err(io::Error::other(format!("{argument} is for no program")));
            }
            Task::Run(program) => {
                let mut command = Command::new(program);
                while let Some(Task::Argument(argument)) =
                    rest.next_if(|task| matches!(task, Task::Argument(_)))
                {
                    command.arg(argument);
                }
                command.envs(variables.iter().filter_map(|variable| variable.split_once('=')));
                command.current_dir(&folder);
                say(Kind::Status, run(&mut command).encode().as_bytes());
            }
        }
    }
    Ok(())
}

/// One frame at a time, and all of it.
fn say(kind: Kind, payload: &[u8]) {
    let mut console = io::stdout().lock();
    // There is nobody to tell that the console is gone.
    let _ = console.write_all(&protocol::frame(kind, payload)).and_then(|()| console.flush());
}

/// Bytes pass the console as they are, with no carriage returns put before the line feeds.
fn make_raw() {
    let mut settings = Terminal([0; 256]);
    // SAFETY: there is room for any `struct termios`.
    if unsafe { tcgetattr(CONSOLE, &raw mut settings) } != 0 {
        return; // no terminal: nothing to turn off
    }
    // SAFETY: tcgetattr(3) filled it.
    unsafe { cfmakeraw(&raw mut settings) };
    // SAFETY: as before; 0 is TCSANOW.
    unsafe { tcsetattr(CONSOLE, 0, &raw const settings) };
}

fn mount_at(kind: &str, folder: &str) -> io::Result<()> {
    let (kind, at) = (CString::new(kind)?, CString::new(folder)?);
    // SAFETY: the strings live to the end of the call; these file systems take no data.
    let result = unsafe { mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), 0, ptr::null()) };
    match io::Error::last_os_error() {
        _ if result == 0 => Ok(()),
        // The kernel may have done it itself.
        error if error.kind() == io::ErrorKind::ResourceBusy => Ok(()),
        error => Err(io::Error::new(error.kind(), format!("mounting {folder}: {error}"))),
    }
}

fn set_clock(seconds: i64) -> io::Result<()> {
    let time = [seconds, 0];
    // SAFETY: the kernel reads a 64-bit timespec there; 0 is CLOCK_REALTIME.
    let result = unsafe { syscall(CLOCK_SETTIME, c_long::from(0_i8), time.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs the program, its output framed.
fn run(command: &mut Command) -> Status {
    let start = Instant::now();
    let code = match framed(command) {
        Ok(status) => exit_code(status),
        Err(error) => {
            let program = command.get_program().to_string_lossy();
            say(Kind::Err, format!("guest-init: {program}: {error}\n").as_bytes());
            NOT_STARTED
        }
    };
    Status { code, millis: start.elapsed().as_millis().try_into().unwrap_or(u64::MAX) }
}

fn framed(command: &mut Command) -> io::Result<ExitStatus> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (sign, signs) = channel();
    if let Some(pipe) = child.stdout.take() {
        forward(Kind::Out, pipe, sign.clone());
    }
    if let Some(pipe) = child.stderr.take() {
        forward(Kind::Err, pipe, sign);
    }
    let status = child.wait()?;
    // Until both pipes are at their end.
    while signs.recv_timeout(SILENCE).is_ok() {}
    Ok(status)
}

/// Passes on what comes through the pipe, with a sign of life for each part.
fn forward(kind: Kind, mut pipe: impl Read + Send + 'static, sign: Sender<()>) {
    thread::spawn(move || {
        let mut buffer = [0; PART];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            say(kind, &buffer[..length]);
            if sign.send(()).is_err() {
                break; // nobody waits any more
            }
        }
    });
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Sends the bytes of the image that the kernel gave this process.
fn dump() -> io::Result<()> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let Some(range) =
        maps.lines().find(|line| line.ends_with("[vdso]")).and_then(|line| line.split(' ').next())
    else {
        return Err(io::Error::other("this kernel gives no vDSO"));
    };
    let (start, end) = range.split_once('-').unwrap_or_default();
    let address = |digits| u64::from_str_radix(digits, 16).map_err(io::Error::other);
    let (start, end) = (address(start)?, address(end)?);
    let mut image = vec![0; (end - start) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, start)?;
    for part in image.chunks(LONGEST) {
        say(Kind::Image, part);
    }
    Ok(())
}
