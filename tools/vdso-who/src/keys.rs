//! The key that ends `top`.

use std::io::{self, IsTerminal as _, Read as _, Stdin};

use nix::sys::termios::SpecialCharacterIndices::{VMIN, VTIME};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

/// A terminal that passes on each key as soon as it is pressed, and does not echo it.
pub(crate) struct Keys {
    input: Stdin,
    /// The terminal's earlier settings.
    before: Termios,
}

impl Keys {
    /// Changes the settings of the terminal of standard input. Returns `None` if standard input is
    /// not a terminal, or if this program is in the background, where changing the settings would
    /// stop it (SIGTTOU).
    pub(crate) fn open() -> Option<Self> {
        let input = io::stdin();
        if !input.is_terminal() || tcgetpgrp(&input).ok()? != getpgrp() {
            return None;
        }
        let before = tcgetattr(&input).ok()?;
        let mut now = before.clone();
        now.local_flags
            .remove(LocalFlags::ICANON | LocalFlags::ECHO);
        // A read returns immediately, even if no key was pressed.
        now.control_chars[VMIN as usize] = 0;
        now.control_chars[VTIME as usize] = 0;
        tcsetattr(&input, SetArg::TCSANOW, &now).ok()?;
        Some(Self { input, before })
    }

    /// Returns whether `q` was pressed.
    pub(crate) fn has_quit(&self) -> bool {
        let mut keys = [0; 16];
        match self.input.lock().read(&mut keys) {
            Ok(count) => keys[..count].contains(&b'q'),
            Err(_) => false,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.input, SetArg::TCSANOW, &self.before);
    }
}
