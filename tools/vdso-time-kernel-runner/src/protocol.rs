//! What `guest-init` and the runner exchange: a job in the initramfs, and frames on the
//! serial console that say what happened.
//!
//! The kernel writes to the same console, and QEMU can lose bytes there. So each frame has a number
//! and a checksum, and the guest repeats it until the runner acknowledges its number.
//!
//! Init is compiled for each architecture before a guest can boot, which with serde would take
//! minutes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::iter;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::slice;

/// The file of the initramfs with the [`Job`].
pub const JOB: &str = "/job";

/// The argument with which init prints the vDSO image.
pub const IMAGE: &str = "image";

/// What init does.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Each program and its arguments.
    pub programs: Vec<Vec<String>>,
    /// The working folder of the programs.
    pub folder: String,
    /// The variables of the programs.
    pub environment: BTreeMap<String, String>,
    /// The seconds since the Epoch that init sets the wall clock to.
    pub clock: Option<i64>,
}

impl Job {
    /// Returns the text of the file. NUL separates the words, because no argument or variable can
    /// contain it.
    #[must_use]
    pub fn encode(&self) -> String {
        let variables: Vec<_> =
            self.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let clock = self.clock.map_or(String::new(), |clock| clock.to_string());
        let mut words = vec![self.folder.clone(), clock];
        for list in iter::once(&variables).chain(&self.programs) {
            words.push(list.len().to_string());
            words.extend(list.iter().cloned());
        }
        words.join("\0")
    }

    /// Parses a job; `None` if the text is incomplete.
    #[must_use]
    pub fn decode(file: &str) -> Option<Self> {
        let mut words = file.split('\0').map(str::to_owned);
        let (folder, clock) = (words.next()?, words.next()?.parse().ok());
        let mut list = || -> Option<Vec<String>> {
            let length = words.next()?.parse().ok()?;
            (0..length).map(|_| words.next()).collect()
        };
        let variables = list()?;
        let programs = iter::from_fn(list).collect();
        let variables = variables.iter().map(|variable| variable.split_once('='));
        let environment = variables.map(|it| it.map(|(name, value)| (name.into(), value.into())));
        Some(Self { programs, folder, environment: environment.collect::<Option<_>>()?, clock })
    }
}

/// The most bytes that a message contains.
pub const LONGEST: usize = 512;

/// What happened in the guest.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Init has started.
    Hello,
    /// Bytes of the program's standard output.
    Out(Vec<u8>),
    /// Bytes of its standard error.
    Err(Vec<u8>),
    /// The program ended with this [`exit_code`].
    Ended(u8),
    /// The job is done.
    End,
}

impl Message {
    /// Returns the kind of message, as a letter, and its bytes.
    fn parts(&self) -> (char, &[u8]) {
        match self {
            Self::Hello => ('h', &[]),
            Self::Out(bytes) => ('o', bytes),
            Self::Err(bytes) => ('e', bytes),
            Self::Ended(code) => ('c', slice::from_ref(code)),
            Self::End => ('z', &[]),
        }
    }

    fn from_parts(kind: char, bytes: Vec<u8>) -> Option<Self> {
        Some(match kind {
            'h' => Self::Hello,
            'o' => Self::Out(bytes),
            'e' => Self::Err(bytes),
            'c' => Self::Ended(*bytes.first()?),
            'z' => Self::End,
            _ => return None,
        })
    }
}

/// Returns the exit code, or 128 plus the signal that ended the program.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// STX and ETX, which kernels do not print.
const START: char = '\x02';
const END: char = '\x03';

/// A message and how many came before.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame(pub u32, pub Message);

impl Frame {
    /// Returns the bytes for the console: START, a checksum, the number, the letter of the message,
    /// its bytes in hexadecimal digits, END.
    #[must_use]
    pub fn encode(&self) -> String {
        let (kind, bytes) = self.1.parts();
        let mut text = format!("{}{kind}", self.0);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        format!("{START}{:08x}{text}{END}", checksum(&text))
    }

    /// Decodes what is between START and END; `None` if it is damaged.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (sum, text) = std::str::from_utf8(bytes).ok()?.split_at_checked(8)?;
        if u32::from_str_radix(sum, 16) != Ok(checksum(text)) {
            return None;
        }
        let kind = text.chars().find(char::is_ascii_alphabetic)?;
        let (number, digits) = text.split_once(kind)?;
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes = digits.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?;
        Some(Self(number.parse().ok()?, Message::from_parts(kind, bytes)?))
    }
}

/// Computes FNV-1a.
fn checksum(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns the line with which the runner acknowledges a frame.
#[must_use]
pub fn acknowledgement(number: u32) -> String {
    format!("ack {number}")
}

/// The runner's end of the console: separates frames from the kernel's messages.
#[derive(Default)]
pub struct Console {
    pending: Vec<u8>,
    messages: String,
}

impl Console {
    /// Adds bytes that came from the console.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend(bytes);
    }

    /// Returns the next undamaged frame. The guest repeats a damaged one.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            let end = self.pending.iter().position(|byte| *byte == END as u8)?;
            let start = self.pending[..end].iter().rposition(|byte| *byte == START as u8);
            let frame = start.and_then(|start| Frame::decode(&self.pending[start + 1..end]));
            let messages: Vec<u8> = self.pending.drain(..=end).take(start.unwrap_or(end)).collect();
            self.messages.push_str(&String::from_utf8_lossy(&messages));
            if frame.is_some() {
                return frame;
            }
        }
    }

    /// Returns the bytes outside frames: the kernel's messages.
    #[must_use]
    pub fn messages(&self) -> String {
        format!("{}{}", self.messages, String::from_utf8_lossy(&self.pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the frames found when the bytes come in parts of this size, and the kernel's
    /// messages.
    fn received(text: &str, size: usize) -> (Vec<Frame>, String) {
        let mut console = Console::default();
        let mut frames = Vec::new();
        for part in text.as_bytes().chunks(size) {
            console.push(part);
            frames.extend(iter::from_fn(|| console.next_frame()));
        }
        (frames, console.messages())
    }

    #[test]
    fn a_job_is_read_as_it_was_written() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let job = Job {
            programs: vec![words(&["/a b", "", "--x=\n"]), words(&["/c"])],
            folder: "/a".into(),
            environment: BTreeMap::from([("CARGO_A".into(), "x=y".into()), ("RUST_B".into(), String::new())]),
            clock: Some(-1),
        };
        let none = Job { programs: Vec::new(), environment: BTreeMap::new(), clock: None, ..job.clone() };
        for job in [job, none] {
            let file = job.encode();
            assert_eq!(Job::decode(&file), Some(job), "{file:?}");
        }
        assert_eq!(Job::decode("/a\0\x001"), None);
    }

    #[test]
    fn undamaged_frames_are_found_among_kernel_messages_in_parts_of_any_size() {
        let all: Vec<u8> = (0..=255).collect();
        let frames = [Frame(0, Message::Out(all)), Frame(1, Message::Ended(101))];
        let [out, status] = frames.clone().map(|frame| frame.encode());
        let sent = ["Run /init\r\n\x02zz\x03", &out, "noise", &status, "end"].concat();
        for size in 1..sent.len() {
            let (found, messages) = received(&sent, size);
            assert_eq!((&*found, &*messages), (&frames[..], "Run /init\r\nnoiseend"));
        }
        for (at, char) in out.char_indices() {
            let rest = &out[at + char.len_utf8()..];
            for damaged in [[&out[..at], rest].concat(), [&out[..at], "\x04", rest].concat()] {
                let (found, _) = received(&[&*damaged, &out, &status].concat(), 100);
                assert_eq!(found, frames, "byte {at}");
            }
        }
    }
}
