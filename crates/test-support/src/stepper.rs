//! A program executed one instruction at a time, between breakpoints of its own (x86_64).

use std::io;
use std::process::Command;

use crate::cost::Cost;
use crate::tracee::Tracee;

const INT3: u8 = 0xcc;
/// `test eax, eax`: of an `int` that a function returned, whether it is 0.
const TEST_EAX: [u8; 2] = [0x85, 0xc0];

/// A program that is stopped; it ends with this.
pub struct Stepper(Tracee);

/// What was executed between two breakpoints.
#[derive(Default)]
pub struct Section {
    /// Outside of the vDSO. Inside it varies: a read is repeated if the kernel wrote to its page
    /// meanwhile. The kernel does so some hundred times a second, and a step takes microseconds.
    pub cost: Cost,
    /// Where the vDSO was entered, each time.
    pub entries: Vec<u64>,
}

impl Stepper {
    /// Starts a program; the error says what is missing here.
    pub fn start(command: Command) -> io::Result<Self> {
        let tracee = Tracee::spawn(command)?;
        if tracee.vdso.is_empty() {
            return Err(io::Error::other("the program has no vDSO"));
        }
        Ok(Self(tracee))
    }

    /// Goes to the next breakpoint, and step by step to the one after that.
    pub fn section(&self) -> io::Result<Section> {
        let mut section = Section::default();
        let mut before = [0; 2];
        let mut at = self.0.resume()?;
        loop {
            if self.0.vdso.contains(&at) {
                section.entries.push(at as u64);
                while self.0.vdso.contains(&at) {
                    at = self.0.step()?;
                }
            }
            let mut code = [0; 2];
            self.0.read(at, &mut code)?;
            if code[0] == INT3 {
                break;
            }
            let next = self.0.step()?;
            section.cost.instructions += 1;
            // A conditional jump has an offset of 8 bits or of 32.
            let length = match code {
                [0x70..=0x7f, _] => 2,
                [0x0f, 0x80..=0x8f] => 6,
                _ => 0,
            };
            if length != 0 {
                let check = before == TEST_EAX && next == at + length;
                *(if check { &mut section.cost.checks } else { &mut section.cost.branches }) += 1;
            }
            (before, at) = (code, next);
        }
        self.0.resume()?;
        Ok(section)
    }
}
