//! A plug-in for Nagios and its relatives: one line, and status 0 OK, 1 WARNING, 3 UNKNOWN.

use std::process::ExitCode;

use vdso_doctor::{Place, Read, check};

fn main() -> ExitCode {
    let (status, word, text) = match check(&Read::USUAL) {
        Ok(()) => (0, "OK", "clock reads stay in user space".into()),
        Err(finding) if finding.place == Place::Kernel => (1, "WARNING", finding.message),
        Err(finding) => (3, "UNKNOWN", finding.message),
    };
    println!("CLOCK {word} - {text}");
    ExitCode::from(status)
}
