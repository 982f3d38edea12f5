//! What the runner and the guest's init tell each other: the tasks, in a file of the initramfs, and the answers, in
//! frames on the serial console.
//!
//! The kernel writes to that console as well, and bytes can be lost there. So each frame has a number and a checksum,
//! and init repeats it until the runner acknowledges the number: a boot that ends well has lost nothing.

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

/// The file of the initramfs that tells init what to do.
pub(crate) const TASKS: &str = "/tasks";

/// Begins a frame. Kernels and firmwares hardly ever write this byte.
const START: u8 = 0x02;

/// After the start: the kind, then number, length and checksum in hexadecimal digits.
const HEAD: usize = 1 + 8 + 4 + 8;

/// The longest payload. What is lost is sent again as a whole frame.
pub(crate) const LONGEST: usize = 1024;

/// What a frame's payload is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Init runs; nothing.
    Hello,
    /// What the program wrote to its standard output.
    Out,
    /// What it wrote to its standard error.
    Err,
    /// The program has ended: its status, then the milliseconds that it took.
    Status,
    /// Bytes of the guest's vDSO.
    Image,
    /// All is done; nothing.
    End,
}

const KINDS: [(u8, Kind); 6] = [
    (b'h', Kind::Hello),
    (b'o', Kind::Out),
    (b'e', Kind::Err),
    (b's', Kind::Status),
    (b'v', Kind::Image),
    (b'q', Kind::End),
];

/// One part of what init says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    /// How many came before it.
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let letter = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or(b'?', |(letter, _)| *letter);
        let mut head = vec![letter];
        head.extend(format!("{:08x}{:04x}", self.number, self.payload.len()).bytes());
        let checksum = format!("{:08x}", checksum(&[&head, &self.payload]));
        [&[START], &head[..], checksum.as_bytes(), &self.payload].concat()
    }

    /// The frame at the beginning of the bytes, with its length; `Partial` if its rest may be on the way.
    fn decode(bytes: &[u8]) -> Result<(Self, usize), Fault> {
        let head = bytes.get(1..=HEAD).ok_or(Fault::Partial)?;
        let number = |range| {
            let digits = std::str::from_utf8(&head[range]).map_err(|_| Fault::Damaged)?;
            u32::from_str_radix(digits, 16).map_err(|_| Fault::Damaged)
        };
        let (_, kind) = KINDS.iter().find(|(letter, _)| *letter == head[0]).ok_or(Fault::Damaged)?;
        let (this, length, expected) = (number(1..9)?, number(9..13)? as usize, number(13..HEAD)?);
        if length > LONGEST {
            return Err(Fault::Damaged);
        }
        let end = 1 + HEAD + length;
        let payload = bytes.get(1 + HEAD..end).ok_or(Fault::Partial)?;
        if checksum(&[&head[..13], payload]) != expected {
            return Err(Fault::Damaged);
        }
        Ok((Self { number: this, kind: *kind, payload: payload.into() }, end))
    }
}

enum Fault {
    Partial,
    Damaged,
}

/// FNV-1a.
fn checksum(parts: &[&[u8]]) -> u32 {
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    parts.concat().iter().fold(0x811c_9dc5, step)
}

/// The line with which the runner says that it has the frame of this number.
pub(crate) fn acknowledgement(number: u32) -> String {
    format!("have {number:08x}\n")
}

/// The console's bytes, taken apart as they come.
#[derive(Default)]
pub(crate) struct Console {
    pending: Vec<u8>,
    /// What was in no frame: the kernel's own messages.
    pub(crate) noise: String,
}

impl Console {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend(bytes);
    }

    /// The next frame that came undamaged.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            let start = self.pending.iter().position(|byte| *byte == START).unwrap_or(self.pending.len());
            self.noise.push_str(&String::from_utf8_lossy(&self.pending[..start]));
            self.pending.drain(..start);
            match Frame::decode(&self.pending) {
                Ok((frame, length)) => {
                    self.pending.drain(..length);
                    return Some(frame);
                }
                Err(Fault::Partial) => return None,
                Err(Fault::Damaged) => drop(self.pending.remove(0)),
            }
        }
    }
}

/// A program that has ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Status {
    /// Its exit code, or 128 and the signal that ended it.
    pub(crate) code: u8,
    pub(crate) millis: u64,
}

impl Status {
    pub(crate) fn new(status: ExitStatus, took: Duration) -> Self {
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
        Self { code, millis: took.as_millis().try_into().unwrap_or(u64::MAX) }
    }

    pub(crate) fn encode(&self) -> String {
        format!("{} {}", self.code, self.millis)
    }

    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let (code, millis) = std::str::from_utf8(payload).ok()?.split_once(' ')?;
        Some(Self { code: code.parse().ok()?, millis: millis.parse().ok()? })
    }
}

/// One line for init, in the order in which it obeys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Task {
    /// Set the clock, in seconds since the Epoch.
    Clock(i64),
    /// The programs' working folder.
    Folder(String),
    /// A variable of the programs' environment, `NAME=value`.
    Variable(String),
    /// Run this program, with the arguments that follow.
    Run(String),
    Argument(String),
    /// Send init's own vDSO.
    Dump,
}

/// Each task ends with a zero byte, which no argument and no variable can hold.
pub(crate) fn encode(tasks: &[Task]) -> String {
    let mut text = String::new();
    for task in tasks {
        let _ = match task {
            // a String takes every write
            Task::Clock(seconds) => write!(text, "clock:{seconds}\0"),
            Task::Folder(path) => write!(text, "folder:{path}\0"),
            Task::Variable(variable) => write!(text, "variable:{variable}\0"),
            Task::Run(program) => write!(text, "run:{program}\0"),
            Task::Argument(argument) => write!(text, "argument:{argument}\0"),
            Task::Dump => write!(text, "dump:\0"),
        };
    }
    text
}

pub(crate) fn decode(text: &str) -> Option<Vec<Task>> {
    let task = |field: &str| {
        let (name, value) = field.split_once(':')?;
        Some(match name {
            "clock" => Task::Clock(value.parse().ok()?),
            "folder" => Task::Folder(value.into()),
            "variable" => Task::Variable(value.into()),
            "run" => Task::Run(value.into()),
            "argument" => Task::Argument(value.into()),
            "dump" => Task::Dump,
            _ => return None,
        })
    };
    text.split_terminator('\0').map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::{Console, Frame, Kind, LONGEST, Status, Task, decode, encode};

    fn frames() -> [Frame; 2] {
        let status = Status { code: 101, millis: 7 }.encode();
        [
            Frame { number: 0, kind: Kind::Out, payload: b"a\x02o\n".into() },
            Frame { number: 1, kind: Kind::Status, payload: status.into() },
        ]
    }

    /// All frames that are found when the bytes come in parts of this size, and the noise.
    fn received(bytes: &[u8], size: usize) -> (Vec<Frame>, String) {
        let mut console = Console::default();
        let mut frames = Vec::new();
        for part in bytes.chunks(size) {
            console.push(part);
            while let Some(frame) = console.next() {
                frames.push(frame);
            }
        }
        (frames, console.noise)
    }

    #[test]
    fn frames_are_found_among_the_kernels_messages_however_the_bytes_are_cut() {
        let [out, status] = frames();
        let mut sent = b"[    0.1] Run /init\r\n\x02\x02zzzz".to_vec();
        sent.extend(out.encode());
        sent.extend(b"late noise");
        sent.extend(status.encode());
        for size in 1..sent.len() {
            let (found, noise) = received(&sent, size);
            assert_eq!(found, [out.clone(), status.clone()]);
            assert!(noise.ends_with("late noise"), "{noise:?}");
        }
        assert_eq!(Status::decode(&status.payload), Some(Status { code: 101, millis: 7 }));
    }

    #[test]
    fn a_frame_that_lost_a_byte_or_has_a_wrong_one_is_not_taken_and_its_repetition_is() {
        let [out, status] = frames();
        let whole = out.encode();
        // Fills what a damaged length may claim.
        let after = [whole.clone(), status.encode(), vec![b'.'; LONGEST + 64]].concat();
        for at in 0..whole.len() {
            let (mut short, mut wrong) = (whole.clone(), whole.clone());
            short.remove(at);
            wrong[at] ^= 1;
            for damaged in [short, wrong] {
                let (found, _) = received(&[&damaged[..], &after].concat(), 100);
                assert_eq!(found, frames(), "byte {at}");
            }
        }
    }

    #[test]
    fn tasks_come_back_as_they_went() {
        let tasks = [
            Task::Clock(-1),
            Task::Folder("/a b".into()),
            Task::Variable("X=a=b\nc".into()),
            Task::Dump,
            Task::Run("/bin/p".into()),
            Task::Argument(String::new()),
            Task::Argument("a:b".into()),
        ];
        assert_eq!(decode(&encode(&tasks)).as_deref(), Some(&tasks[..]));
        assert_eq!(decode("sing:\0"), None);
    }
}
