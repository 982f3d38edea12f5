//! The messages between the runner and `guest-init`. The runner puts a job into the initramfs. The
//! guest reports what happened in frames on the serial console.
//!
//! The kernel writes to the same console, and QEMU can lose bytes there. So each frame has a number
//! and a checksum, and the guest repeats it until the runner acknowledges its number.
//!
//! Init is compiled for each architecture before a guest can boot. So we use nanoserde, which has
//! no dependencies: serde and its macros would delay the first boot.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nanoserde::{DeBin, SerBin};

/// The file of the initramfs with the [`Job`].
pub const JOB: &str = "/job";

/// The program that provides a guest's shell and usual commands.
pub const BUSYBOX: &str = "/bin/busybox";

/// The work of init.
#[derive(Clone, Debug, PartialEq, DeBin, SerBin)]
pub struct Job {
    /// Each program and its arguments.
    pub programs: Vec<Vec<String>>,
    /// The working directory of the programs.
    pub directory: String,
    /// The variables of the programs.
    pub environment: BTreeMap<String, String>,
    /// The seconds since the Epoch that init sets the wall clock to.
    pub clock: Option<i64>,
}

/// The maximum number of bytes in a message.
pub const LONGEST: usize = 512;

/// An event in the guest.
#[derive(Clone, Debug, PartialEq, DeBin, SerBin)]
pub enum Message {
    /// Init has started.
    Hello,
    /// Bytes of the program's standard output.
    Out(Vec<u8>),
    /// Bytes of its standard error.
    Err(Vec<u8>),
    /// The number of processes that the kernel killed while the program ran, because no memory was
    /// left.
    OutOfMemory(u32),
    /// The program ended with this [`exit_code`].
    Ended(u8),
    /// The job is done.
    End,
}

/// Returns the exit code, or 128 plus the signal that ended the program.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => return u8::MAX,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// STX and ETX, which kernels do not print.
const START: char = '\x02';
const END: char = '\x03';

/// A message, and the number of messages before it.
#[derive(Clone, Debug, PartialEq, DeBin, SerBin)]
pub struct Frame(pub u32, pub Message);

impl Frame {
    /// Returns the bytes for the console: START, a checksum, the frame in hexadecimal digits, END.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        for byte in self.serialize_bin() {
            let _ = write!(text, "{byte:02x}");
        }
        format!("{START}{:08x}{text}{END}", checksum(&text))
    }

    /// Decodes the bytes between START and END. Returns `None` if they are damaged.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (sum, digits) = text.split_at_checked(8)?;
        let sum = u32::from_str_radix(sum, 16).ok()?;
        if sum != checksum(digits) {
            return None;
        }
        let mut bytes = Vec::new();
        for pair in digits.as_bytes().chunks(2) {
            let pair = std::str::from_utf8(pair).ok()?;
            bytes.push(u8::from_str_radix(pair, 16).ok()?);
        }
        Self::deserialize_bin(&bytes).ok()
    }
}

/// Computes FNV-1a.
fn checksum(text: &str) -> u32 {
    let mut sum: u32 = 0x811c_9dc5;
    for byte in text.bytes() {
        sum ^= u32::from(byte);
        sum = sum.wrapping_mul(0x0100_0193);
    }
    sum
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
            let before = &self.pending[..end];
            let start = before.iter().rposition(|byte| *byte == START as u8);
            let mut frame = None;
            if let Some(start) = start {
                frame = Frame::decode(&before[start + 1..]);
            }
            let messages = &before[..start.unwrap_or(end)];
            self.messages += &String::from_utf8_lossy(messages);
            self.pending.drain(..=end);
            if frame.is_some() {
                return frame;
            }
        }
    }

    /// Returns the bytes outside frames: the kernel's messages.
    #[must_use]
    pub fn messages(&self) -> String {
        format!(
            "{}{}",
            self.messages,
            String::from_utf8_lossy(&self.pending)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    /// Pushes `text` to a console in parts of `size` bytes. Returns the frames that were found, and
    /// the kernel's messages.
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
    fn undamaged_frames_are_found_among_kernel_messages_in_parts_of_any_size() {
        let all: Vec<u8> = (0..=255).collect();
        let first = Frame(0, Message::Out(all));
        let second = Frame(1, Message::Ended(101));
        let out = first.encode();
        let status = second.encode();
        let frames = [first, second];
        let sent = ["Run /init\r\n\x02zz\x03", &out, "noise", &status, "end"].concat();
        for size in 1..sent.len() {
            let (found, messages) = received(&sent, size);
            assert_eq!(found, frames);
            assert_eq!(messages, "Run /init\r\nnoiseend");
        }
        for (at, char) in out.char_indices() {
            let before = &out[..at];
            let after = &out[at + char.len_utf8()..];
            for instead in ["", "\x04"] {
                let sent = [before, instead, after, &out, &status].concat();
                let (found, _) = received(&sent, 100);
                assert_eq!(found, frames, "byte {at}");
            }
        }
    }
}
