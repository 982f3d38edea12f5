//! `/init` of a guest: does the tasks that the place runner put beside it, and powers off.
//!
//! Built for the guest's programs, statically, by `cargo xtask on`; nothing else is in the guest.

#![allow(unsafe_code, reason = "libc's functions for what only the first process does; std has none")]

mod link;
#[path = "../place-runner/protocol.rs"]
#[allow(dead_code, reason = "the runner uses the other half")]
mod protocol;

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use link::Link;
use protocol::{Kind, Status, TASKS, Task};

/// clock_settime with a 64-bit time.
const CLOCK_SETTIME: libc::c_long = if cfg!(target_pointer_width = "32") {
    404
} else if cfg!(target_arch = "aarch64") {
    112
} else {
    227
};

/// How often init looks for new output of the program.
const LOOK: Duration = Duration::from_millis(20);

/// What a shell ends with when there is no such program: 127, as wait(2) gives it.
const NOT_STARTED: i32 = 127 << 8;

fn main() {
    // Without a console there is nobody to tell: the kernel panics, as init has left.
    let Ok(mut link) = Link::new() else { return };
    if let Err(error) = work(&mut link) {
        link.say(Kind::Err, format!("guest-init: {error}\n").as_bytes());
    }
    link.say(Kind::End, &[]);
    // SAFETY: nothing is left to be saved: all files are in memory.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
    // A machine that cannot do that ends with the kernel's panic when init leaves.
}

fn work(link: &mut Link) -> io::Result<()> {
    link.say(Kind::Hello, &[]);
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
            Task::Folder(path) => folder = path,
            Task::Variable(variable) => variables.push(variable),
            Task::Dump => link.say(Kind::Image, &image()?),
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
                let status = run(link, &mut command);
                link.say(Kind::Status, status.encode().as_bytes());
            }
        }
    }
    Ok(())
}

fn mount_at(kind: &str, folder: &str) -> io::Result<()> {
    let (kind, at) = (CString::new(kind)?, CString::new(folder)?);
    // SAFETY: the strings live to the end of the call; these file systems take no data.
    let result = unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), 0, ptr::null()) };
    match io::Error::last_os_error() {
        _ if result == 0 => Ok(()),
        // The kernel may have done it itself.
        error if error.kind() == io::ErrorKind::ResourceBusy => Ok(()),
        error => Err(io::Error::new(error.kind(), format!("mounting {folder}: {error}"))),
    }
}

fn set_clock(seconds: i64) -> io::Result<()> {
    let time = [seconds, 0];
    // SAFETY: the kernel reads a 64-bit timespec there.
    let result = unsafe { libc::syscall(CLOCK_SETTIME, libc::CLOCK_REALTIME, time.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Runs the program, and passes its output on.
fn run(link: &mut Link, command: &mut Command) -> Status {
    let start = Instant::now();
    let ended = watched(link, command).unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy();
        link.say(Kind::Err, format!("guest-init: {program}: {error}\n").as_bytes());
        ExitStatus::from_raw(NOT_STARTED)
    });
    Status::new(ended, start.elapsed())
}

/// The program writes to files: when it has ended, all that it wrote is there. A pipe would stay
/// open for as long as a child that it left behind.
fn watched(link: &mut Link, command: &mut Command) -> io::Result<ExitStatus> {
    let (out_to, mut out) = output_file("/stdout")?;
    let (err_to, mut err) = output_file("/stderr")?;
    let mut child = command.stdin(Stdio::null()).stdout(out_to).stderr(err_to).spawn()?;
    loop {
        let ended = child.try_wait()?;
        pass_on(link, Kind::Out, &mut out)?;
        pass_on(link, Kind::Err, &mut err)?;
        match ended {
            Some(status) => return Ok(status),
            None => thread::sleep(LOOK),
        }
    }
}

/// A file without a name: the end that is written to, and the end that is read.
fn output_file(path: &str) -> io::Result<(File, File)> {
    let to = File::options().create(true).append(true).open(path)?;
    let from = File::open(path)?;
    fs::remove_file(path)?;
    Ok((to, from))
}

/// Sends what has been written to the file since the last time.
fn pass_on(link: &mut Link, kind: Kind, file: &mut File) -> io::Result<()> {
    let mut new = Vec::new();
    file.read_to_end(&mut new)?;
    link.say(kind, &new);
    Ok(())
}

/// The bytes of the image that the kernel gave this process.
fn image() -> io::Result<Vec<u8>> {
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
    Ok(image)
}
