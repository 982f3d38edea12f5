//! [`Record`]: what the latch keeps: the line, and what its maker leaves to the maker of the next one.

use super::latch::{Seen, Word};
use super::line::{self, Line, Rate};
use super::sample::Sample;
use super::status::Status;

/// How many words a record has; a read takes the first five.
pub(super) const WORDS: usize = 11;

/// Everything that is known of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) line: Line,
    /// `CLOCK_REALTIME` less `CLOCK_MONOTONIC`, in nanoseconds.
    pub(super) offset: i64,
    /// The counter's own rate, of which the line's differs by a correction that ends with it.
    pub(super) steady: Rate,
    /// When both clocks were last read.
    pub(super) sampled: Sample,
    /// What a read of both costs at least, in ticks.
    pub(super) cost: u64,
    pub(super) phase: Phase,
    /// How often, of late, counter and clock went apart when the CPU was another than before.
    pub(super) strikes: u8,
    /// The CPU of the sample, if that could be told.
    pub(super) cpu: Option<u32>,
}

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is known.
    Idle,
    /// There is a sample, of which the rate comes roughly.
    Rough,
    /// There is a good sample, of which the rate comes.
    Baseline,
    /// There is a line.
    Line,
    /// There is none, and there will be none unless the reason is a refusal.
    Off(Status),
}

const OFF: u8 = 16;

impl Record {
    /// A record without a line: `line` is the one before, which no answer may fall behind.
    pub(super) const fn without_line(phase: Phase, line: &Line) -> Self {
        Self {
            line: Line::none(line.last()),
            offset: 0,
            steady: 0,
            sampled: Sample { ticks: 0, nanos: 0 },
            cost: 0,
            phase,
            strikes: 0,
            cpu: None,
        }
    }

    /// Whether there will be no line.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.phase, Phase::Off(status) if !status.is_refusal())
    }

    /// The counter's own rate in Hz, once it is measured.
    pub(super) fn frequency(&self) -> Option<u64> {
        (self.phase == Phase::Line).then(|| line::frequency(self.steady))
    }

    /// As the latch keeps it: what a read takes comes first.
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let phase = match self.phase {
            Phase::Idle => 0,
            Phase::Rough => 1,
            Phase::Baseline => 2,
            Phase::Line => 3,
            Phase::Off(status) => {
                OFF + Status::ALL.iter().position(|other| *other == status).unwrap_or_default() as u8
            }
        };
        let cpu = self.cpu.map_or(0, |cpu| u64::from(cpu) + 1);
        [
            self.line.start,
            self.line.nanos,
            self.line.rate,
            self.line.fresh(),
            self.offset as u64,
            self.line.span,
            self.steady,
            self.sampled.ticks,
            self.sampled.nanos,
            self.cost,
            u64::from(phase) | (u64::from(self.strikes) << 8) | (cpu << 16),
        ]
    }

    pub(super) fn from_words(words: &[u64; WORDS]) -> Self {
        let [start, nanos, rate, _, offset, span, steady, ticks, sampled, cost, rest] = *words;
        let phase = match rest as u8 {
            0 => Phase::Idle,
            1 => Phase::Rough,
            2 => Phase::Baseline,
            3 => Phase::Line,
            off => Phase::Off(
                Status::ALL.get(usize::from(off.wrapping_sub(OFF))).copied().unwrap_or(Status::Unknown),
            ),
        };
        Self {
            line: Line { start, nanos, rate, span },
            offset: offset as i64,
            steady,
            sampled: Sample { ticks, nanos: sampled },
            cost,
            phase,
            strikes: (rest >> 8) as u8,
            cpu: (rest >> 16).checked_sub(1).map(|cpu| cpu as u32),
        }
    }
}

/// The time of the tick by a record's words; none if there is no line, or another one should be made.
///
/// Without a line the counter is not read: this thread may have no right to. And `isb` holds back a read of the counter from what
/// was loaded before only behind a branch on it (Arm Architecture Reference Manual, D12.2), which this one is.
#[inline]
pub(super) fn fresh(words: &[Word; WORDS], ticks: impl FnOnce() -> u64) -> Option<u64> {
    let [start, nanos, rate, fresh, ..] = words;
    let fresh = fresh.load();
    if fresh == 0 {
        return None;
    }
    let past = ticks().wrapping_sub(start.load());
    let nanos = nanos.load().wrapping_add(line::nanos(past, rate.load()));
    (past < fresh).then_some(nanos)
}

/// The same of `CLOCK_REALTIME`.
#[inline]
pub(super) fn fresh_realtime(words: &[Word; WORDS], ticks: impl FnOnce() -> u64) -> Option<i64> {
    let [.., offset, _, _, _, _, _, _] = words;
    Some((fresh(words, ticks)? as i64).wrapping_add(offset.load() as i64))
}

/// The time of a tick by the line that counts, or by the one before it, which has the ticks up to that.
pub(super) fn at(seen: &Seen<WORDS>, ticks: u64) -> Option<u64> {
    let record = Record::from_words(&seen.words);
    if record.phase != Phase::Line {
        return None;
    }
    let before = || Record::from_words(seen.before.as_ref()?).line.at(ticks);
    record.line.at(ticks).or_else(before)
}
