//! Programs that this machine's kernel runs: in QEMU's user mode, or natively where the plan has no
//! QEMU.

use std::io::{self, IsTerminal as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Run;
use crate::group::Group;
use crate::limit::{exceeded, limit};
use crate::plan::Plan;
use crate::protocol::Status;

pub(crate) fn run(plan: &Plan, runs: &[Run], mut ended: impl FnMut(&Run, Status)) -> Result<(), String> {
    let limit = limit()?;
    for run in runs {
        let mut words = plan.qemu.iter().chain([&run.program]).chain(&run.arguments);
        let mut command = Command::new(words.next().ok_or("there is no program")?);
        command.args(words);
        if io::stdin().is_terminal() {
            // A group in the background is stopped when it reads from the terminal.
            command.stdin(Stdio::null());
        }
        let start = Instant::now();
        let status = Group::start(&mut command)?.wait(limit)?;
        let status = status.ok_or_else(|| exceeded(&run.program, limit))?;
        ended(run, Status::new(status, start.elapsed()));
    }
    Ok(())
}
