//! Says where this machine's time comes from, whether reading it stays in user space, and what it
//! costs.
//!
//! `cargo run --release --example doctor`, or `cargo install --path . --example doctor`; `--help`
//! says what else it can do.

pub(crate) mod arguments;
mod cpus;
mod json;
pub(crate) mod machine;
pub(crate) mod proof;
pub(crate) mod read;
pub(crate) mod report;
mod sentence;
mod stdout;
pub(crate) mod timing;
pub(crate) mod verdict;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use arguments::{Arguments, HELP, USUAL};
use cpus::Cpus;
use machine::{Machine, Supervisor};
use proof::{Evidence, Finding, Method, Place, Prover};
use read::Read;
use report::{Image, Page, Report, Row};
use vdso_time::arch::NATIVE;
use vdso_time::routes;
use vdso_time::vdso::Vdso;
use verdict::{Facts, verdict};

/// Something that was to be proved is not so; or that cannot be found out, or the report cannot be
/// written.
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
            complain(&format!("{error}\n\n{HELP}"));
            return USAGE;
        }
    };
    let outcome = if stdout::was_open() { examine(&arguments) } else { Err(Failure::Closed) };
    let what = match outcome {
        Ok(status) => return status,
        // The reader of a pipe has read enough, and left.
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => return CANNOT_TELL,
        Err(Failure::Write(error)) => format!("cannot write the report: {error}"),
        Err(Failure::Closed) => "cannot write the report: standard output is closed".into(),
        Err(Failure::Method(why)) => why,
    };
    complain(&what);
    CANNOT_TELL
}

/// Why there is no report, or not all of it.
enum Failure {
    Closed,
    Write(io::Error),
    /// What the report is made by does not work here.
    Method(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// On standard error, if that can be written to.
fn complain(what: &str) {
    let _ = writeln!(io::stderr(), "doctor: {what}");
}

/// Looks, prints as it goes, and judges.
fn examine(arguments: &Arguments) -> Result<u8, Failure> {
    let mut page = Page::new();
    if arguments.help {
        page.text(HELP.trim_end())?;
        return Ok(0);
    }
    if machine::counter_is_fatal() {
        // So it is in the vDSO, and this program has a watch to look at.
        let why = "reading the CPU's counter is fatal to this process (PR_SET_TSC); time() and the coarse clocks are not";
        return Err(Failure::Method(why.into()));
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

    // Without a vDSO, or without a table of what is in it, there is nothing to find out.
    let method = match (&image, NATIVE) {
        (Ok(_), Some(_)) => Some(chosen(arguments.method)?),
        _ => None,
    };
    // A sandbox may keep this thread from being moved.
    let movable = |cpus: &Cpus| cpus.numbers().into_iter().all(|cpu| cpus.pin(cpu).is_ok());
    let cpus = Cpus::allowed().ok().filter(movable);
    cpus.iter().for_each(Cpus::release);
    let numbers = cpus.as_ref().map_or(Vec::new(), Cpus::numbers);
    // A preempted look at the watch is no proof of a coarse one.
    let has_watch = (0..5).any(|_| timing::has_watch());
    if talks {
        page.method(method, numbers.len(), has_watch)?;
    }
    let emulated = machine.supervisor.is_some_and(Supervisor::emulates);
    let kernel_entry = if emulated || !has_watch { None } else { timing::kernel_entry() };
    let prover = Prover { method, routes: &routes, cpus, kernel_entry };
    let asked = arguments.required.as_deref().unwrap_or(&USUAL);
    let mut reads = read::all();
    for read in asked {
        if !reads.contains(read) {
            reads.push(*read);
        }
    }
    let mut rows = Vec::new();
    for read in reads {
        let speed = if has_watch { timing::speed(read) } else { None };
        let found = Row::new(read, prover.prove(read, speed), speed);
        if talks {
            page.row(&found)?;
        }
        rows.push(found);
    }

    let verdict = verdict(&Facts { machine: &machine, rows: &rows }, asked);
    let status = arguments.required.as_deref().map_or(0, |required| status(&rows, required, &machine));
    if talks {
        page.seconds(&rows)?;
        page.verdict(&verdict)?;
    } else {
        let report =
            Report { machine: &machine, image, routes: &routes, method, cpus: numbers, rows, verdict };
        page.text(&json::json(&report))?;
    }
    Ok(status)
}

/// The method that was asked for, if it works here, or the best.
fn chosen(asked: Option<Method>) -> Result<Method, Failure> {
    let Some(method) = asked else { return Ok(Method::best()) };
    let works = method.check().map(|()| method);
    works.map_err(|error| Failure::Method(format!("--method={} does not work here: {error}", method.name())))
}

/// What `--require-user-space` leaves with. One that enters the kernel decides, whatever cannot be told of the others.
fn status(rows: &[Row], required: &[Read], machine: &Machine) -> u8 {
    let of = |read: &Read| match rows.iter().find(|row| row.read == *read).map(|row| row.finding) {
        Some(Finding { place: Place::UserSpace, evidence: Evidence::Proved(_) }) => 0,
        // What an emulator does says nothing of the machine.
        _ if matches!(machine.supervisor, Some(Supervisor::Qemu | Supervisor::Emulator)) => CANNOT_TELL,
        Some(Finding { place: Place::Kernel, evidence: Evidence::Proved(_) | Evidence::Routed(_) }) => {
            ENTERS_KERNEL
        }
        _ => CANNOT_TELL,
    };
    let all: Vec<_> = required.iter().map(of).collect();
    if all.contains(&ENTERS_KERNEL) { ENTERS_KERNEL } else { all.into_iter().max().unwrap_or(0) }
}
