//! An encoder for log4rs: `ConsoleAppender::builder().encoder(Box::new(CoarseTime))`.

use log::Record;
use log4rs::encode::{Encode, Write};

use crate::jiff_now;

/// The time of the coarse clock, the level, the target and the message.
#[derive(Debug)]
pub struct CoarseTime;

impl Encode for CoarseTime {
    fn encode(&self, out: &mut dyn Write, record: &Record<'_>) -> anyhow::Result<()> {
        let (time, level, target) = (jiff_now()?, record.level(), record.target());
        Ok(writeln!(out, "{time:.3} {level} {target}: {}", record.args())?)
    }
}
