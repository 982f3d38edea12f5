//! The signals that end a measurement.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use nix::sys::signal::{SigHandler, Signal, signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::proc;

/// The first signal that asked for the end of the measurement. A second signal ends this program.
pub(crate) struct Interrupt {
    /// The number of the first signal, or 0 before a signal has arrived.
    first: Arc<AtomicUsize>,
    /// The signals that this program ignored when it was started. A command ignores them as well.
    pub(crate) ignored: Vec<Signal>,
}

impl Interrupt {
    /// Catches SIGINT and SIGTERM, and stops ignoring SIGCHLD. Some callers, such as bspwm and
    /// bubblewrap, ignore SIGCHLD, and this program inherits that. The kernel would then discard
    /// the status of a command that ends.
    #[allow(unsafe_code, reason = "an action of a signal is set")]
    pub(crate) fn catch() -> io::Result<Self> {
        let ignored = proc::ignored(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGCHLD]);
        // SAFETY: the default action of this signal runs no code.
        unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
        let first = Arc::new(AtomicUsize::new(0));
        let is_second = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // A signal runs its actions in the order in which they were registered. The first
            // action ends the program if `is_second` is set, and the second action sets
            // `is_second`. So the first signal does not end the program, but the second one does.
            flag::register_conditional_default(signal, is_second.clone())?;
            flag::register(signal, is_second.clone())?;
            flag::register_usize(signal, first.clone(), signal as usize)?;
        }
        Ok(Self { first, ignored })
    }

    /// Creates an interrupt that no signal sets.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self {
            first: Arc::default(),
            ignored: Vec::new(),
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.first.load(Relaxed) != 0
    }

    /// Returns whether the signal was SIGTERM, which timeout(1) and systemd send.
    pub(crate) fn is_termination(&self) -> bool {
        self.first.load(Relaxed) == SIGTERM as usize
    }

    /// Ends the measurement as if this signal had arrived.
    pub(crate) fn set(&self, signal: i32) {
        let signal = signal as usize;
        let _ = self.first.compare_exchange(0, signal, Relaxed, Relaxed);
    }
}
