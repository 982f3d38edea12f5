//! What `guest-init` and `cargo xtask runner` exchange: files in the initramfs that say what to do,
//! and frames on the serial console that say what happened.
//!
//! The kernel writes to the same console, and QEMU can lose bytes there. So each frame has a number
//! and a checksum, and the guest repeats it until the runner acknowledges its number.

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

/// The folder of the initramfs with the job:
/// - `0`, `1`, ...: a program and its arguments, as fields;
/// - `environment`: `NAME=value` as fields;
/// - `folder`: the working folder of the programs;
/// - `clock` (optional): seconds since the Epoch that the wall clock is set to;
/// - `dump` (optional): send the vDSO image.
pub const JOB: &str = "/job";

/// The longest payload of a frame.
pub const LONGEST: usize = 512;

/// STX and ETX, which kernels do not print.
const START: u8 = 0x02;
const END: u8 = 0x03;

/// Encodes strings that contain no zero byte, such as arguments and environment variables.
#[must_use]
pub fn encode_fields<S: AsRef<str>>(fields: impl IntoIterator<Item = S>) -> String {
    fields.into_iter().fold(String::new(), |text, field| text + field.as_ref() + "\0")
}

/// Decodes the strings of [`encode_fields`].
#[must_use]
pub fn decode_fields(text: &str) -> Vec<String> {
    text.split_terminator('\0').map(String::from).collect()
}

/// What the payload of a frame is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
pub enum Kind {
    /// Empty: init has started.
    Hello,
    /// Bytes of the program's standard output.
    Out,
    /// Bytes of its standard error.
    Err,
    /// The program ended: an encoded [`Status`].
    Status,
    /// Bytes of the vDSO image.
    Image,
    /// Empty: the job is done.
    End,
}

const KINDS: [Kind; 6] = [Kind::Hello, Kind::Out, Kind::Err, Kind::Status, Kind::Image, Kind::End];

/// One message of the guest. On the wire: START, hexadecimal digits, END.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// How many frames came before.
    pub number: u32,
    /// What the payload is.
    pub kind: Kind,
    /// At most [`LONGEST`] bytes.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The bytes for the console.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.number.to_be_bytes().to_vec();
        bytes.push(self.kind as u8);
        bytes.extend(&self.payload);
        bytes.extend(checksum(&bytes).to_be_bytes());
        let digits = bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
            text
        });
        [&[START], digits.as_bytes(), &[END]].concat()
    }

    /// Decodes the digits between START and END; `None` if they are damaged.
    fn decode(digits: &[u8]) -> Option<Self> {
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
        let (content, sum) = bytes.split_last_chunk()?;
        let (number, rest) = content.split_first_chunk()?;
        let (kind, payload) = rest.split_first()?;
        let is_whole = checksum(content) == u32::from_be_bytes(*sum);
        let kind = *KINDS.get(usize::from(*kind))?;
        is_whole.then(|| Self { number: u32::from_be_bytes(*number), kind, payload: payload.into() })
    }
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// The line with which the runner acknowledges a frame.
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

    /// The next undamaged frame. The guest repeats a damaged one.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            let end = self.pending.iter().position(|byte| *byte == END)?;
            let start = self.pending[..end].iter().rposition(|byte| *byte == START);
            let frame = start.and_then(|start| Frame::decode(&self.pending[start + 1..end]));
            let messages: Vec<u8> = self.pending.drain(..=end).take(start.unwrap_or(end)).collect();
            self.messages.push_str(&String::from_utf8_lossy(&messages));
            if frame.is_some() {
                return frame;
            }
        }
    }

    /// What was in no frame: the kernel's messages.
    #[must_use]
    pub fn messages(&self) -> String {
        format!("{}{}", self.messages, String::from_utf8_lossy(&self.pending))
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// The exit code, or 128 plus the signal that ended the program.
    pub code: u8,
    /// How long it ran.
    pub millis: u64,
}

impl Status {
    /// From what wait(2) returned.
    #[must_use]
    pub fn new(status: ExitStatus, took: Duration) -> Self {
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
        Self { code, millis: took.as_millis().try_into().unwrap_or(u64::MAX) }
    }

    /// The payload of its frame.
    #[must_use]
    pub fn encode(&self) -> String {
        format!("{} {}", self.code, self.millis)
    }

    /// Decodes the payload.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (code, millis) = std::str::from_utf8(payload).ok()?.split_once(' ')?;
        Some(Self { code: code.parse().ok()?, millis: millis.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: Status = Status { code: 101, millis: 7 };

    fn frames() -> [Frame; 2] {
        [
            Frame { number: 0, kind: Kind::Out, payload: b"a\x02o\x03\n".into() },
            Frame { number: 1, kind: Kind::Status, payload: STATUS.encode().into() },
        ]
    }

    /// The frames found when the bytes come in parts of this size, and the kernel's messages.
    fn received(bytes: &[u8], size: usize) -> (Vec<Frame>, String) {
        let mut console = Console::default();
        let mut frames = Vec::new();
        for part in bytes.chunks(size) {
            console.push(part);
            frames.extend(std::iter::from_fn(|| console.next_frame()));
        }
        (frames, console.messages())
    }

    #[test]
    fn frames_are_found_among_kernel_messages_in_parts_of_any_size() {
        let [out, status] = frames().map(|frame| frame.encode());
        let sent = [b"Run /init\r\n\x02zz\x03", &out[..], b"noise", &status, b"end"].concat();
        for size in 1..sent.len() {
            let (found, messages) = received(&sent, size);
            assert_eq!(found, frames());
            assert_eq!(messages, "Run /init\r\nnoiseend");
        }
        assert_eq!(Status::decode(&frames()[1].payload), Some(STATUS));
    }

    #[test]
    fn a_damaged_frame_is_ignored_and_its_repetition_is_found() {
        let [out, status] = frames().map(|frame| frame.encode());
        for at in 0..out.len() {
            let (mut short, mut wrong) = (out.clone(), out.clone());
            short.remove(at);
            wrong[at] ^= 1;
            for damaged in [short, wrong] {
                let (found, _) = received(&[damaged, out.clone(), status.clone()].concat(), 100);
                assert_eq!(found, frames(), "byte {at}");
            }
        }
    }

    #[test]
    fn fields_may_be_empty_and_hold_any_character() {
        let fields = ["", "X=a=b\nc", "/a b"].map(String::from);
        assert_eq!(decode_fields(&encode_fields(&fields)), fields);
    }
}
