//! Runs a program at a place, as if it ran here: in QEMU's user mode, or in a real kernel that QEMU
//! boots with the program in its initramfs. Arguments, environment, output and exit status pass
//! through. A runner for cargo, which `cargo xtask on` sets up.

mod boot;
mod cpio;
mod group;
mod initramfs;
mod limit;
mod plan;
#[allow(dead_code, reason = "init uses the other half")]
mod protocol;
mod user_mode;

use std::env;
use std::fs;
use std::process::ExitCode;

use plan::Plan;
use protocol::{Status, Task};

const USAGE: &str = "\
Usage: place-runner PROGRAM [ARGUMENT...]   run it at the place; leave with its status
       place-runner --each PROGRAM [ARGUMENT...] [--and PROGRAM [ARGUMENT...]]...
                                            run several, one after the other, in one boot
       place-runner --dump FILE             write the kernel's vDSO image

Environment:
  VDSO_TIME_PLAN           the place: a file that `cargo xtask on WHERE ...` writes to target/places
  VDSO_TIME_GUEST_TIMEOUT  the seconds that a program may take, instead of 120";

/// Stands between the programs of `--each`.
const AND: &str = "--and";

/// What a program could not have left with: the place failed, or the program took too long.
const PLACE_FAILED: u8 = 125;

/// A program and its arguments.
struct Run {
    program: String,
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    group::end_with_parent();
    let arguments: Vec<String> = match env::args_os().skip(1).map(std::ffi::OsString::into_string).collect() {
        Ok(arguments) => arguments,
        Err(raw) => return fail(&format!("{raw:?} is not UTF-8")),
    };
    match dispatch(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(message) => fail(&message),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("place-runner: {message}");
    ExitCode::from(PLACE_FAILED)
}

fn dispatch(arguments: &[String]) -> Result<u8, String> {
    let [first, rest @ ..] = arguments else { return Err(USAGE.into()) };
    match (first.as_str(), rest) {
        ("--dump", [file]) => dump(&Plan::read()?, file),
        ("--each", words @ [_, ..]) => each(&Plan::read()?, words),
        (option, _) if option.starts_with("--") => Err(USAGE.into()),
        _ => {
            let mut code = PLACE_FAILED;
            run(&Plan::read()?, &[Run::read(arguments)?], |_, status| code = status.code)?;
            Ok(code)
        }
    }
}

fn dump(plan: &Plan, file: &str) -> Result<u8, String> {
    let init = plan.init.as_ref().ok_or("this place has no kernel of its own")?;
    let image = boot::boot(plan, init, &[], vec![Task::Dump], |_, _| {})?;
    if image.is_empty() {
        return Err("this kernel gives its programs no vDSO".into());
    }
    fs::write(file, image).map_err(|error| format!("{file}: {error}"))?;
    Ok(0)
}

/// Runs several. After the output of each is a line that says how it ended. Leaves with 1 if any
/// failed.
fn each(plan: &Plan, words: &[String]) -> Result<u8, String> {
    let runs = words.split(|word| word == AND).map(Run::read).collect::<Result<Vec<_>, _>>()?;
    let mut failed = false;
    run(plan, &runs, |run, Status { code, millis }| {
        println!("\nplace-runner: {}: status {code}, {millis} ms", run.program);
        failed |= code != 0;
    })?;
    Ok(u8::from(failed))
}

/// Runs the programs, whose output is passed on as it comes; `ended` hears of each.
fn run(plan: &Plan, runs: &[Run], ended: impl FnMut(&Run, Status)) -> Result<(), String> {
    match &plan.init {
        Some(init) => boot::boot(plan, init, runs, initramfs::environment(), ended).map(drop),
        None => user_mode::run(plan, runs, ended),
    }
}

impl Run {
    fn read(words: &[String]) -> Result<Self, String> {
        let [program, arguments @ ..] = words else { return Err(USAGE.into()) };
        let path = std::path::absolute(program).map_err(|error| format!("{program}: {error}"))?;
        let program = path.into_os_string().into_string().map_err(|path| format!("{path:?} is not UTF-8"))?;
        Ok(Self { program, arguments: arguments.into() })
    }

    fn tasks(&self) -> impl Iterator<Item = Task> {
        let arguments = self.arguments.iter().cloned().map(Task::Argument);
        [Task::Run(self.program.clone())].into_iter().chain(arguments)
    }
}
