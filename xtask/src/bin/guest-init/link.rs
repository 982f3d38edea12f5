//! The console, as a line on which nothing is lost: what the runner does not acknowledge is said
//! again.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _};

use crate::protocol::{Frame, Kind, LONGEST, acknowledgement};

/// How long to wait for an acknowledgement, in milliseconds. A frame said twice does no harm.
const PATIENCE: i32 = 1000;

pub(crate) struct Link {
    input: File,
    output: File,
    /// The number of the next frame.
    number: u32,
    /// What the runner has sent, up to the end of a line.
    received: Vec<u8>,
}

impl Link {
    pub(crate) fn new() -> io::Result<Self> {
        let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        make_raw(&input);
        Ok(Self { input, output, number: 0, received: Vec::new() })
    }

    /// Returns when the runner has all of it. Output that is empty needs no frame.
    pub(crate) fn say(&mut self, kind: Kind, payload: &[u8]) {
        if matches!(kind, Kind::Hello | Kind::End) {
            self.frame(kind, &[]);
        }
        for part in payload.chunks(LONGEST) {
            self.frame(kind, part);
        }
    }

    fn frame(&mut self, kind: Kind, payload: &[u8]) {
        let bytes = Frame { number: self.number, kind, payload: payload.into() }.encode();
        loop {
            // There is nobody to tell that the console is gone.
            let _ = self.output.write_all(&bytes);
            if self.is_acknowledged() {
                self.number += 1;
                return;
            }
        }
    }

    fn is_acknowledged(&mut self) -> bool {
        let expected = acknowledgement(self.number);
        while has_input(&self.input) {
            let mut buffer = [0; 64];
            match self.input.read(&mut buffer) {
                Ok(length @ 1..) => self.received.extend(&buffer[..length]),
                _ => return false,
            }
            while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                if self.received.drain(..=end).eq(expected.bytes()) {
                    return true;
                }
            }
        }
        false
    }
}

fn has_input(console: &File) -> bool {
    let mut wanted = libc::pollfd { fd: console.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel writes to the one entry that lives to the end of the call.
    unsafe { libc::poll(&raw mut wanted, 1, PATIENCE) == 1 }
}

/// Bytes pass the console as they are: none is changed, and none is echoed.
fn make_raw(console: &File) {
    let console = console.as_raw_fd();
    let mut settings = MaybeUninit::uninit();
    // SAFETY: there is room for libc's `struct termios`.
    if unsafe { libc::tcgetattr(console, settings.as_mut_ptr()) } != 0 {
        return; // no terminal: nothing to turn off
    }
    // SAFETY: tcgetattr(3) filled it, for it returned 0.
    let mut settings = unsafe { settings.assume_init() };
    // SAFETY: `settings` is a `struct termios` that this function owns.
    unsafe { libc::cfmakeraw(&raw mut settings) };
    // SAFETY: as before; tcsetattr(3) only reads it.
    unsafe { libc::tcsetattr(console, libc::TCSANOW, &raw const settings) };
}
