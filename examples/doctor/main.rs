//! Says where this machine's time comes from, whether reading it stays in user space, and what it costs.
//!
//! `cargo run --release --example doctor`, or `cargo install vdso-time --example doctor`; `--help` says what else it can do.

pub(crate) mod arguments;
mod cpus;
mod json;
pub(crate) mod machine;
pub(crate) mod proof;
pub(crate) mod read;
mod report;
mod timing;
pub(crate) mod verdict;

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use arguments::{Arguments, HELP, USUAL};
use cpus::Cpus;
use machine::{Machine, Supervisor};
use proof::{Evidence, Finding, Method, Place, Prover};
use read::Read;
use report::{Image, Page, Report, Row};
use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, routes};
use verdict::{Facts, verdict};

/// Something that was to be proved is not so, or it cannot be told.
const ENTERS_KERNEL: u8 = 1;
const CANNOT_TELL: u8 = 2;
/// EX_USAGE of sysexits(3).
const USAGE: u8 = 64;

fn main() -> ExitCode {
    run(env::args_os().skip(1)).into()
}

/// Does what the arguments say, and gives the status to leave with.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> u8 {
    let arguments = match arguments::parse(arguments.map(|raw| raw.to_string_lossy().into_owned())) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("doctor: {error}\n\n{HELP}");
            return USAGE;
        }
    };
    match examine(&arguments) {
        Ok(status) => status,
        // Who closed the pipe has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => CANNOT_TELL,
        Err(error) => {
            eprintln!("doctor: {error}");
            CANNOT_TELL
        }
    }
}

/// Looks, prints as it goes, and judges.
fn examine(arguments: &Arguments) -> io::Result<u8> {
    let mut page = Page::new();
    if arguments.help {
        page.text(HELP.trim_end())?;
        return Ok(0);
    }
    let vdso = Vdso::locate();
    let machine = Machine::look(vdso.as_ref().ok());
    let image = vdso.map(Image::new);
    let routes = routes();
    let talks = !arguments.json;
    if talks {
        page.image(&machine, image.as_ref())?;
        page.routes(&routes)?;
        page.clock_source(&machine)?;
    }

    // Without a vDSO there is nothing to find out.
    let method = image.as_ref().map_or(Ok(None), |_| chosen(arguments.method).map(Some))?;
    // Where a sandbox keeps this thread from being moved, it is examined where it is.
    let movable = |cpus: &Cpus| cpus.numbers().into_iter().all(|cpu| cpus.pin(cpu).is_ok());
    let cpus = Cpus::allowed().ok().filter(movable);
    let numbers = cpus.as_ref().map_or(Vec::new(), Cpus::numbers);
    if talks {
        page.method(method, numbers.len())?;
    }
    // By system call, or by the vDSO, which has no CPU times, and on x86 enters the kernel by a faster door.
    let system_call = timing::speed(Read::ClockGettime(ClockId::THREAD_CPUTIME))
        .map(|speed| speed.here.min(speed.system_call))
        .filter(|_| !machine.supervisor.is_some_and(Supervisor::emulates));
    let prover = Prover { method, routes: &routes, cpus, system_call };
    let mut rows = Vec::new();
    for read in read::all() {
        let speed = timing::speed(read);
        let found = Row::new(read, prover.prove(read, speed), speed);
        if talks {
            page.row(&found)?;
        }
        rows.push(found);
    }

    let findings: Vec<_> = rows.iter().map(|row| (row.read, row.finding)).collect();
    let facts = Facts { machine: &machine, findings: &findings };
    let verdict = verdict(&facts, arguments.required.as_deref().unwrap_or(&USUAL));
    if talks {
        page.seconds(&rows)?;
        page.verdict(&verdict)?;
    } else {
        let report =
            Report { machine: &machine, image, routes: &routes, method, cpus: numbers, rows, verdict };
        page.text(&json::json(&report))?;
    }
    Ok(arguments.required.as_deref().map_or(0, |required| status(&findings, required)))
}

/// The method that was asked for, if it works here, or the best.
fn chosen(asked: Option<Method>) -> io::Result<Method> {
    let Some(method) = asked else { return Ok(Method::best()) };
    match method.check() {
        Ok(()) => Ok(method),
        Err(error) => Err(io::Error::new(error.kind(), format!("no {} here: {error}", method.name()))),
    }
}

/// What `--require-user-space` leaves with. One that enters the kernel decides, whatever cannot be told of the others.
fn status(findings: &[(Read, Finding)], required: &[Read]) -> u8 {
    let of = |read: &Read| match findings.iter().find(|(found, _)| found == read) {
        Some((_, Finding { place: Place::UserSpace, evidence: Evidence::Proved(_) })) => 0,
        Some((_, Finding { place: Place::Kernel, evidence: Evidence::Proved(_) | Evidence::Routed(_) })) => {
            ENTERS_KERNEL
        }
        _ => CANNOT_TELL,
    };
    let all: Vec<_> = required.iter().map(of).collect();
    if all.contains(&ENTERS_KERNEL) { ENTERS_KERNEL } else { all.into_iter().max().unwrap_or(0) }
}
