//! Standard output and standard error.

#![allow(unsafe_code, reason = "a link section is chosen, and libc is called")]

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Result;
use crate::text::{COLUMNS, wrapped};

/// The exit status of this program if it fails.
pub(crate) const FAILED: u8 = 2;

/// The exit status for a wrong command line: EX_USAGE of sysexits(3).
pub(crate) const USAGE: u8 = 64;

/// Whether standard output was open for writing when the program started.
static WAS_OPEN: AtomicBool = AtomicBool::new(true);

// SAFETY: this section contains the addresses of functions that the C library calls once before
// `main`, and `check_output` is such a function.
#[used]
#[unsafe(link_section = ".init_array")]
static CHECK_OUTPUT: extern "C" fn() = check_output;

extern "C" fn check_output() {
    // SAFETY: fcntl(2) takes any number.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    WAS_OPEN.store(
        flags != -1 && flags & libc::O_ACCMODE != libc::O_RDONLY,
        Ordering::Relaxed,
    );
}

/// Returns an error if standard output was not open for writing when the program started.
///
/// Writing the report would not reveal that, because the write would seem to succeed. Before
/// `main`, std opens /dev/null in place of a closed descriptor, and writing to /dev/null succeeds.
/// std also treats EBADF, the error for a descriptor that is open only for reading, as success. So
/// [`check_output`] checks the descriptor before std changes it.
pub(crate) fn require_output() -> Result<()> {
    if WAS_OPEN.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err("cannot write the report: standard output is not open for writing".into())
}

/// Prints on standard output. EPIPE is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    match write(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the report: {error}").into())
        }
        _ => Ok(()),
    }
}

/// Prints a text that was asked for, such as the help, and returns the exit status.
pub(crate) fn print_all(text: &str) -> Result<u8> {
    require_output()?;
    print(text)?;
    Ok(0)
}

/// Writes to standard output, with colours only if that is a terminal.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns the number of columns of the terminal, or [`COLUMNS`] if standard output is not a
/// terminal.
pub(crate) fn columns() -> usize {
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((width, _)) => width.0.into(),
        None => COLUMNS,
    }
}

/// Prints a message on standard error, in lines of 80 columns. If the message cannot be written,
/// the error is ignored.
pub(crate) fn say(what: &str) {
    let lines = wrapped(&printable(&format!("vdso-who: {what}")), COLUMNS);
    let _ = writeln!(io::stderr(), "{lines}");
}

/// Prints why a command line is wrong, and returns the exit status.
pub(crate) fn wrong_usage(message: &str) -> u8 {
    say(message);
    USAGE
}

/// Escapes the control characters that a terminal would obey. A path or an argument can contain
/// them.
fn printable(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if letter.is_control() && letter != '\n' {
            escaped.extend(letter.escape_debug());
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

/// Returns, in one line, what clap prints before the usage: the error, and perhaps a suggestion.
pub(crate) fn usage(error: &clap::Error) -> String {
    let message = error.to_string();
    let mut sentences = Vec::new();
    for paragraph in message.trim_start_matches("error: ").split("\n\n") {
        if paragraph.starts_with("Usage:") || paragraph.starts_with("For more information") {
            break;
        }
        let words: Vec<_> = paragraph.split_whitespace().collect();
        sentences.push(words.join(" "));
    }
    format!("{} (see `vdso-who --help`)", sentences.join("; "))
}
