//! [`Engine`]: the reads, and who makes the next line.

use super::floor::Floor;
use super::latch::{Latch, Seen};
use super::line;
use super::record::{Phase, Record, WORDS, at, fresh, fresh_realtime};
use super::renewal;
use super::sample::Source;
use super::status::Status;

/// The error of a line under a clock that keeps its rate, in nanoseconds; or three ticks, if these are more.
const NOISE: u64 = 30;

/// By how much the kernel's clock is behind when it is another than before: that of a time namespace, into which only a
/// process of one thread comes (clone(2), setns(2)). No line is that long.
const GONE: u64 = 5_000_000_000;

/// A counter that is kept true to the kernel's clock.
#[repr(C)]
pub(crate) struct Engine<S> {
    latch: Latch<WORDS>,
    floor: Floor,
    source: S,
}

impl<S: Source> Engine<S> {
    pub(crate) const fn new(source: S) -> Self {
        Self { latch: Latch::new(), floor: Floor::new(), source }
    }

    /// The monotonic time in nanoseconds by a fresh line, if there is one.
    #[inline]
    pub(crate) fn monotonic(&self, ticks: impl FnOnce(&S) -> u64) -> Option<u64> {
        let (nanos, is_whole) = self.latch.peek(|words| fresh(words, || ticks(&self.source)));
        nanos.filter(|&nanos| is_whole && nanos >= self.floor.get())
    }

    /// The wall clock's time in nanoseconds since the Epoch; the same.
    #[inline]
    pub(crate) fn realtime(&self, ticks: impl FnOnce(&S) -> u64) -> Option<i64> {
        let (nanos, is_whole) = self.latch.peek(|words| fresh_realtime(words, || ticks(&self.source)));
        nanos.filter(|_| is_whole)
    }

    /// What answers when there is no fresh line, and makes the next one; none if the vDSO is asked, and denies the time.
    pub(crate) fn slow_monotonic(&self) -> Option<u64> {
        let seen = self.latch.load();
        let record = Record::from_words(&seen.words);
        // Read after the line was seen, so not before its maker read what it begins with.
        let ticks = if record.phase == Phase::Line { self.source.ticks_ordered() } else { 0 };
        if let Some(nanos) = at(&seen, ticks) {
            if record.line.at(ticks).is_some() && !record.line.is_fresh(ticks) {
                self.renew(&seen, &record, nanos);
            }
            return Some(nanos.max(self.floor.get()));
        }
        let (floor, last) = (self.floor.get(), record.line.last());
        let now = self.source.monotonic()?;
        // Both are at most a line's time ahead of a kernel's clock that was read before.
        let is_gone = |nanos: u64| nanos > now.saturating_add(GONE);
        if is_gone(floor) {
            self.floor.lower(floor, now);
        }
        let last = if is_gone(last) { 0 } else { last };
        if record.is_final() {
            return Some(now.max(last)); // there will be no line to fall behind
        }
        if record.phase == Phase::Line && record.line.is_right_behind(ticks) {
            // This CPU's counter is behind another's.
            return Some(self.floor.raise(now.max(record.line.nanos)));
        }
        // Before a new line is seen, which may begin before the old one's end.
        let answer = self.floor.raise(now.max(last));
        self.renew(&seen, &record, now);
        Some(answer)
    }

    /// The same for the wall clock.
    pub(crate) fn slow_realtime(&self) -> Option<i64> {
        if !Record::from_words(&self.latch.load().words).is_final() {
            self.slow_monotonic()?;
        }
        self.source.realtime()
    }

    /// Computes the next record, and makes it count if nobody else was faster.
    fn renew(&self, seen: &Seen<WORDS>, record: &Record, now: u64) {
        if seen.is_claimed() {
            return;
        }
        if let Some(next) = renewal::after(&self.source, record, now) {
            self.latch.renew(seen, &next.to_words());
        }
    }

    /// Whether the counter is used, or why not.
    pub(crate) fn status(&self) -> Status {
        let seen = self.latch.load();
        match Record::from_words(&seen.words).phase {
            Phase::Off(status) => status,
            Phase::Line if at(&seen, self.source.ticks_ordered()).is_some() => Status::Used,
            _ if seen.is_claimed() => Status::Claimed,
            Phase::Line => Status::Stale,
            _ => Status::Calibrating,
        }
    }

    /// The counter's rate in Hz, once it is measured.
    pub(crate) fn frequency(&self) -> Option<u64> {
        let record = Record::from_words(&self.latch.load().words);
        (record.phase == Phase::Line).then(|| line::frequency(record.steady))
    }

    /// How far a read can be from the kernel's clock, in nanoseconds; 0 while the vDSO answers.
    pub(crate) fn error_bound(&self) -> u64 {
        let seen = self.latch.load();
        let Record { line, steady, phase, .. } = Record::from_words(&seen.words);
        if phase != Phase::Line || at(&seen, self.source.ticks_ordered()).is_none() {
            return 0;
        }
        let correction = line::nanos(line.span, line.rate.abs_diff(steady));
        NOISE.max(line::nanos(3, steady)) + correction + line.drift()
    }
}
