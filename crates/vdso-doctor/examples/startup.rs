//! A server that checks its clocks when it starts.

use vdso_doctor::{Place, check};
use vdso_time::ClockId;

fn main() {
    match check(&[ClockId::REALTIME, ClockId::MONOTONIC]) {
        Ok(()) => println!("clock reads stay in user space"),
        Err(finding) if finding.place == Place::Kernel => eprintln!("warning: slow clock: {finding}"),
        // No reason for an alarm: a sandbox or an emulator hides the answer.
        Err(finding) => eprintln!("clock reads were not checked: {finding}"),
    }
    // The server starts here.
}
