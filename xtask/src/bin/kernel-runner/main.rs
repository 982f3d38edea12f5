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

use boot::Outcome;
use plan::Plan;
use protocol::Task;

const USAGE: &str = "\
Usage: kernel-runner PLAN PROGRAM [ARGUMENT...]   run it in the guest; leave with its status
       kernel-runner PLAN --each PROGRAM...       run several in one boot, without arguments
       kernel-runner PLAN --dump FILE             write the guest's vDSO image

`cargo xtask on WHERE ...` writes PLAN to target/boots/WHERE. Environment:
  VDSO_TIME_GUEST_TIMEOUT  the seconds that a boot may take, instead of 120";

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
            let Outcome { image, .. } = boot::boot(&plan, &[], vec![Task::Dump])?;
            if image.is_empty() {
                return Err("this kernel gives its programs no vDSO".into());
            }
            fs::write(file, image).map_err(|error| format!("{file}: {error}"))?;
            Ok(0)
        }
        ("--each", programs @ [_, ..]) => each(&plan, programs),
        (option, _) if option.starts_with("--") => Err(USAGE.into()),
        (program, arguments) => {
            let mut tasks = initramfs::environment();
            tasks.push(Task::Run(initramfs::absolute(program)?));
            tasks.extend(arguments.iter().cloned().map(Task::Argument));
            let outcome = boot::boot(&plan, &[program.into()], tasks)?;
            outcome.statuses.first().map(|status| status.code).ok_or_else(|| "the program did not run".into())
        }
    }
}

/// Tells of each program how it ended, on standard error, and leaves with 1 if any failed.
fn each(plan: &Plan, programs: &[String]) -> Result<u8, String> {
    let mut tasks = initramfs::environment();
    for program in programs {
        tasks.push(Task::Run(initramfs::absolute(program)?));
    }
    let Outcome { statuses, .. } = boot::boot(plan, programs, tasks)?;
    for (program, status) in programs.iter().zip(&statuses) {
        eprintln!("kernel-runner: {program}: status {}, {} ms", status.code, status.millis);
    }
    if statuses.len() < programs.len() {
        return Err(format!("{} of {} programs ran", statuses.len(), programs.len()));
    }
    Ok(u8::from(statuses.iter().any(|status| status.code != 0)))
}
