//! Standard output and standard error of the program, and their errors.

#![allow(unsafe_code, reason = "a link section is chosen, and libc is called")]

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of a command that failed.
pub(crate) const FAILED: u8 = 2;

/// EX_USAGE of sysexits(3).
pub(crate) const USAGE: u8 = 64;

/// The name of the program, which is also the name of its package.
const PROGRAM: &str = env!("CARGO_PKG_NAME");

static WAS_OPEN: AtomicBool = AtomicBool::new(true);

// SAFETY: the section holds addresses of functions that the C library calls once.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: fcntl(2) takes any number.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    WAS_OPEN.store(
        flags != -1 && flags & libc::O_ACCMODE != libc::O_RDONLY,
        Ordering::Relaxed,
    );
}

/// Returns an error if standard output was not open for writing when the program started.
///
/// A check in `main` would be too late. Before `main`, std opens /dev/null in place of a closed
/// descriptor, and every write to /dev/null succeeds. So [`look`] is a constructor, which the C
/// library calls before std opens /dev/null. If the descriptor is open for reading only, a write
/// would not report an error either, because std treats EBADF as success.
pub(crate) fn require_output() -> io::Result<()> {
    let is_open = WAS_OPEN.load(Ordering::Relaxed);
    let why = "cannot write the report: standard output is not open for writing";
    if is_open {
        Ok(())
    } else {
        Err(io::Error::other(why))
    }
}

/// Prints on standard output, with colours only if it is a terminal. EPIPE is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let why = format!("cannot write the report: {error}");
            Err(io::Error::new(error.kind(), why))
        }
        _ => Ok(()),
    }
}

/// Prints a message on standard error, and ignores an error of the write. A terminal gets lines of
/// at most 80 columns. Anything else, such as a log, gets one line.
pub(crate) fn say(what: &str) {
    let mut line = format!("{PROGRAM}: {}", printable(what));
    if io::stderr().is_terminal() {
        line = vdso_doctor::wrapped("", &line);
    }
    let _ = writeln!(io::stderr(), "{line}");
}

/// Escapes control characters except newlines, because a terminal obeys them. A path or an argument
/// can contain them.
pub(crate) fn printable(text: &str) -> String {
    let escaped = |letter: char| match letter {
        '\n' => "\n".into(),
        _ if letter.is_control() => letter.escape_debug().to_string(),
        _ => letter.into(),
    };
    text.chars().map(escaped).collect()
}

/// Returns clap's message as one line, with its suggestions but without the usage.
pub(crate) fn usage(error: &clap::Error) -> String {
    let message = error.to_string();
    let message = message.trim_start_matches("error: ");
    let mut lines = Vec::new();
    for paragraph in message.split("\n\n") {
        if paragraph.starts_with("Usage:") || paragraph.starts_with("For more information") {
            break;
        }
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        lines.push(words.join(" "));
    }
    format!("{} (see `{PROGRAM} --help`)", lines.join("; "))
}

/// Escapes the control characters of JSON, because a terminal obeys them.
///
/// serde_json escapes only the control characters below U+0020, but a terminal also obeys others,
/// such as U+009B. So this function escapes U+007F to U+009F as well. In JSON, these characters can
/// occur only inside a string, where an escape sequence stands for the same character, so the JSON
/// keeps its meaning.
pub(crate) fn escaped(json: &str) -> String {
    let escaped = |letter: char| match letter {
        '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(letter)),
        _ => letter.into(),
    };
    json.chars().map(escaped).collect()
}
