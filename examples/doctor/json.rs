//! The same report for a program.

use std::fmt::Write as _;

use vdso_time::Route;

use super::proof::{Evidence, Place};
use super::report::{Image, Report, Row};
use super::timing::Speed;

/// Text in quotes.
fn string(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control)); // a String takes every write
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn array(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

/// The same, one value on each line.
fn lines(values: impl IntoIterator<Item = String>) -> String {
    format!("[\n{}\n]", values.into_iter().collect::<Vec<_>>().join(",\n"))
}

fn object<const N: usize>(members: [(&str, String); N]) -> String {
    let members = members.map(|(name, value)| format!("{}: {value}", string(name)));
    format!("{{{}}}", members.join(", "))
}

fn or_null<T>(value: Option<T>, write: impl FnOnce(T) -> String) -> String {
    value.map_or("null".into(), write)
}

/// Addresses have more digits than every reader of JSON keeps.
fn address(address: usize) -> String {
    string(&format!("{address:#x}"))
}

fn nanos(nanos: f64) -> String {
    format!("{nanos:.2}")
}

/// The whole report; each read and each symbol has a line of its own.
pub(crate) fn json(report: &Report<'_>) -> String {
    let machine = report.machine;
    let routes = report.routes;
    object([
        ("format", "1".into()),
        ("kernel", string(&machine.release)),
        ("architecture", string(std::env::consts::ARCH)),
        ("supervisor", or_null(machine.supervisor, |supervisor| string(supervisor.name()))),
        (
            "vdso",
            match &report.image {
                Ok(found) => image(found),
                Err(error) => object([("found", "false".into()), ("error", string(&error.to_string()))]),
            },
        ),
        (
            "routes",
            object([
                ("time", route(&routes.time)),
                ("gettimeofday", route(&routes.gettimeofday)),
                ("clock_gettime", route(&routes.clock_gettime)),
                ("clock_getres", route(&routes.clock_getres)),
                ("getcpu", route(&routes.getcpu)),
            ]),
        ),
        (
            "clock_source",
            object([
                ("current", or_null(machine.clock_source.as_deref(), string)),
                ("available", array(machine.available.iter().map(|name| string(name)))),
            ]),
        ),
        ("method", or_null(report.method, |method| string(method.name()))),
        ("cpus", array(report.cpus.iter().map(ToString::to_string))),
        ("reads", lines(report.rows.iter().map(row))),
        ("cause", string(report.verdict.0.name())),
        ("verdict", string(&report.verdict.1)),
    ])
}

fn image(image: &Image<'_>) -> String {
    let symbols = image.vdso.symbols().map(|symbol| {
        object([
            ("name", string(&symbol.name().to_string_lossy())),
            ("version", or_null(symbol.version(), |version| string(&version.to_string_lossy()))),
            ("address", address(image.vdso.address(&symbol).addr())),
            ("size", symbol.size().to_string()),
            ("weak", symbol.is_weak().to_string()),
        ])
    });
    object([
        ("found", "true".into()),
        ("source", string(image.source)),
        ("base", address(image.vdso.base().addr())),
        ("size", image.vdso.size().to_string()),
        ("class", (32 * u32::from(image.vdso.image().class())).to_string()),
        ("sysv_hash", image.hash_tables.sysv.to_string()),
        ("gnu_hash", image.hash_tables.gnu.to_string()),
        ("versions", array(image.versions.iter().map(|version| string(version)))),
        ("symbols", lines(symbols)),
    ])
}

fn route(route: &Route) -> String {
    match route {
        Route::Vdso { symbol, version, address: code, .. } => object([
            ("via", string("vdso")),
            ("symbol", string(symbol)),
            ("version", or_null(*version, string)),
            ("address", address(*code)),
        ]),
        Route::Syscall { number, reason, .. } => object([
            ("via", string("syscall")),
            ("number", number.to_string()),
            ("reason", string(&reason.to_string())),
        ]),
        other => object([("via", string(&other.to_string()))]),
    }
}

fn row(row: &Row) -> String {
    let place = match row.finding.place {
        Place::UserSpace => "user space",
        Place::Kernel => "kernel",
        Place::Unknown => "unknown",
    };
    let (evidence, count, error) = match row.finding.evidence {
        Evidence::Proved(count) => ("proved", Some(count), None),
        Evidence::Routed(_) => ("routed", None, None),
        Evidence::Libc => ("libc", None, None),
        Evidence::Refused(error) => ("refused", None, Some(error)),
        Evidence::Likely => ("likely", None, None),
        Evidence::None => ("none", None, None),
    };
    object([
        ("function", string(row.read.function())),
        ("clock", or_null(row.read.clock(), |clock| string(&format!("{clock:?}")))),
        ("clock_id", or_null(row.read.clock(), |clock| clock.as_raw().to_string())),
        ("place", string(place)),
        ("evidence", string(evidence)),
        ("reads", or_null(count, |count| count.reads.to_string())),
        ("entered", or_null(count, |count| count.entered.to_string())),
        ("outside", or_null(count, |count| count.outside.to_string())),
        ("syscall", or_null(count.and_then(|count| count.syscall), |number| number.to_string())),
        ("error", or_null(error, |error| string(&error.to_string()))),
        ("resolution_ns", or_null(row.resolution, |nanos| nanos.to_string())),
        ("ns", or_null(row.speed, |speed| nanos(speed.here))),
        ("syscall_ns", or_null(row.speed.and_then(|speed| speed.system_call), nanos)),
        ("ratio", or_null(row.speed.and_then(Speed::ratio), |ratio| format!("{ratio:.4}"))),
    ])
}
