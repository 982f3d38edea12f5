//! What the runner and the guest's init tell each other: the tasks, in a file of the initramfs, and the answers, in
//! frames on the serial console, which the kernel writes to as well.

use std::fmt::Write as _;

/// The file of the initramfs that tells init what to do.
pub(crate) const TASKS: &str = "/tasks";

/// Begins a frame. Neither a kernel nor a firmware writes this byte.
const START: u8 = 0x02;

/// The longest payload that the four digits of a frame's length can tell.
pub(crate) const LONGEST: usize = 0xffff;

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

/// The frame: start, kind, four hexadecimal digits of length, payload.
pub(crate) fn frame(kind: Kind, payload: &[u8]) -> Vec<u8> {
    let letter = KINDS.iter().find(|(_, known)| *known == kind).map_or(b'?', |(letter, _)| *letter);
    let mut frame = vec![START, letter];
    frame.extend(format!("{:04x}", payload.len()).bytes());
    frame.extend(payload);
    frame
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

    /// The next whole frame.
    pub(crate) fn next(&mut self) -> Option<(Kind, Vec<u8>)> {
        loop {
            let start = self.pending.iter().position(|byte| *byte == START).unwrap_or(self.pending.len());
            self.noise.push_str(&String::from_utf8_lossy(&self.pending[..start]));
            self.pending.drain(..start);
            let head = self.pending.get(1..6)?;
            if let Some((kind, length)) = parse_head(head) {
                let payload = self.pending.get(6..6 + length)?.to_vec();
                self.pending.drain(..6 + length);
                return Some((kind, payload));
            }
            self.pending.remove(0);
        }
    }
}

fn parse_head(head: &[u8]) -> Option<(Kind, usize)> {
    let (letter, digits) = head.split_first()?;
    let (_, kind) = KINDS.iter().find(|(known, _)| known == letter)?;
    Some((*kind, usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?))
}

/// A program that has ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Status {
    /// Its exit code, or 128 and the signal that ended it.
    pub(crate) code: u8,
    pub(crate) millis: u64,
}

impl Status {
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
    /// Power off after so many seconds, whatever else is being done.
    Deadline(u64),
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
            Task::Deadline(seconds) => write!(text, "deadline:{seconds}\0"),
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
            "deadline" => Task::Deadline(value.parse().ok()?),
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
    use super::{Console, Kind, Status, Task, decode, encode, frame};

    #[test]
    fn frames_among_the_kernels_noise() {
        let mut sent = b"[    0.1] Run /init\r\n\x02\x02zzzz".to_vec();
        sent.extend(frame(Kind::Out, b"a\x02o\n"));
        sent.extend(b"late noise");
        sent.extend(frame(Kind::Status, Status { code: 101, millis: 7 }.encode().as_bytes()));
        // However the bytes are cut.
        for size in 1..sent.len() {
            let mut console = Console::default();
            let mut frames = Vec::new();
            for part in sent.chunks(size) {
                console.push(part);
                while let Some(frame) = console.next() {
                    frames.push(frame);
                }
            }
            assert_eq!(frames.len(), 2);
            assert_eq!(frames[0], (Kind::Out, b"a\x02o\n".to_vec()));
            assert_eq!(Status::decode(&frames[1].1), Some(Status { code: 101, millis: 7 }));
            assert!(console.noise.ends_with("late noise"), "{:?}", console.noise);
        }
    }

    #[test]
    fn tasks_come_back_as_they_went() {
        let tasks = [
            Task::Clock(-1),
            Task::Deadline(1),
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
