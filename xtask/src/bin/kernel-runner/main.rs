//! Boots a real kernel in QEMU with a program in its initramfs, as if it ran here: arguments, environment, output and
//! exit status pass through. A runner for cargo, which `cargo xtask on` sets up.

mod boot;
mod cpio;
mod initramfs;
mod plan;
#[allow(dead_code, reason = "init uses the other half")]
mod protocol;

use std::env;
use std::fs;
use std::process::ExitCode;

use plan::Plan;
use protocol::{Status, Task};

const USAGE: &str = "\
Usage: kernel-runner PLAN PROGRAM [ARGUMENT...]   run it in the guest; leave with its status
       kernel-runner PLAN --each PROGRAM [ARGUMENT...] [--and PROGRAM [ARGUMENT...]]...
                                                  run several in one boot, one after the other
       kernel-runner PLAN --dump FILE             write the guest's vDSO image

`cargo xtask on WHERE ...` writes PLAN to target/boots/WHERE. Environment:
  VDSO_TIME_GUEST_TIMEOUT  the seconds that a boot may take, instead of 120";

/// Stands between the programs of `--each`.
const AND: &str = "--and";

/// What a program could not have left with: it is the guest that failed.
const GUEST_FAILED: u8 = 125;

fn main() -> ExitCode {
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
    eprintln!("kernel-runner: {message}");
    ExitCode::from(GUEST_FAILED)
}

fn dispatch(arguments: &[String]) -> Result<u8, String> {
    let [plan, what, rest @ ..] = arguments else { return Err(USAGE.into()) };
    let plan = Plan::read(plan)?;
    match (what.as_str(), rest) {
        ("--dump", [file]) => {
            let image = boot::boot(&plan, &[], vec![Task::Dump], |_| {})?;
            if image.is_empty() {
                return Err("this kernel gives its programs no vDSO".into());
            }
            fs::write(file, image).map_err(|error| format!("{file}: {error}"))?;
            Ok(0)
        }
        ("--each", words @ [_, ..]) => each(&plan, words),
        (option, _) if option.starts_with("--") => Err(USAGE.into()),
        (program, arguments) => {
            let mut tasks = initramfs::environment();
            tasks.extend(run(program, arguments)?);
            let mut code = GUEST_FAILED;
            boot::boot(&plan, &[program.into()], tasks, |status| code = status.code)?;
            Ok(code)
        }
    }
}

/// Runs several, and tells on standard error how each ended. Leaves with 1 if any failed.
fn each(plan: &Plan, words: &[String]) -> Result<u8, String> {
    let commands: Vec<&[String]> = words.split(|word| word == AND).collect();
    let mut tasks = initramfs::environment();
    let mut programs = Vec::new();
    for command in commands {
        let [program, arguments @ ..] = command else { return Err(USAGE.into()) };
        tasks.extend(run(program, arguments)?);
        programs.push(program.clone());
    }
    let mut rest = programs.iter();
    let mut failed = false;
    boot::boot(plan, &programs, tasks, |Status { code, millis }| {
        let program = rest.next().map_or("a program of nobody's", String::as_str);
        eprintln!("kernel-runner: {program}: status {code}, {millis} ms");
        failed |= code != 0;
    })?;
    Ok(u8::from(failed))
}

fn run(program: &str, arguments: &[String]) -> Result<impl Iterator<Item = Task>, String> {
    let run = Task::Run(initramfs::absolute(program)?);
    Ok([run].into_iter().chain(arguments.iter().cloned().map(Task::Argument)))
}
