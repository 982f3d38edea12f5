//! [`Engine`]: the reads, and who makes the next line.

use super::floor::Floor;
use super::latch::{Latch, Seen};
use super::line;
use super::record::{Phase, Record, WORDS, at, fresh, fresh_realtime};
use super::renewal;
use super::sample::Source;
use super::status::{State, Status};

/// The error of a line under a clock that keeps its rate, in nanoseconds; or three ticks, if these
/// are more.
const NOISE: u64 = 30;

/// No answer is further ahead of the kernel's clock than this, in nanoseconds. A line is made at
/// most one line before its first tick, so it ends at most two lines after the kernel's time; this
/// is twice as much. A time further ahead is that of another kernel's clock: the process, which had
/// one thread (setns(2)), moved into another time namespace.
const AHEAD: u64 = 4 * line::LONGEST;

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

    /// What answers when there is no fresh line, and makes the next one; none if the vDSO is asked,
    /// and denies the time.
    pub(crate) fn slow_monotonic(&self) -> Option<u64> {
        let Look { seen, record, ticks, nanos } = self.look();
        if let Some(nanos) = nanos {
            if record.line.at(ticks).is_some() && !record.line.is_fresh(ticks) {
                self.renew(&seen, &record, nanos);
            }
            return Some(nanos.max(self.floor.get()));
        }
        let (now, answer) = self.ask(&record, ticks)?;
        if record.is_final() {
            return Some(answer); // there will be no line to fall behind
        }
        // Before a new line is seen, which may begin before the old one's end.
        let answer = self.floor.raise(answer);
        if !record.line.is_right_behind(ticks) {
            self.renew(&seen, &record, now);
        }
        Some(answer)
    }

    /// The latch and the counter, each read once, and what they say.
    fn look(&self) -> Look {
        let seen = self.latch.load();
        let record = Record::from_words(&seen.words);
        // Read after the line was seen, so not before its maker read what it begins with.
        let ticks = if record.phase == Phase::Line { self.source.ticks_ordered() } else { 0 };
        Look { nanos: at(&seen, ticks), seen, record, ticks }
    }

    /// The kernel's time, and what this clock answers instead of it when there is no line: never
    /// less than an earlier answer, unless the kernel's clock is another one now. None if a sandbox
    /// denies it.
    fn ask(&self, record: &Record, ticks: u64) -> Option<(u64, u64)> {
        let floor = self.floor.get();
        // Before a line's first tick, this CPU's counter is behind another's.
        let is_before = record.line.is_right_behind(ticks);
        let held = if is_before { record.line.nanos } else { record.line.last() };
        // Read last, so that the two are ahead of it by `AHEAD` at most, whoever else answers meanwhile.
        let now = self.source.monotonic()?;
        let is_gone = |nanos: u64| nanos > now.saturating_add(AHEAD);
        if is_gone(floor) {
            self.floor.lower(floor, now);
        }
        let kept = |nanos| if is_gone(nanos) { 0 } else { nanos };
        Some((now, now.max(kept(floor)).max(kept(held))))
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
        self.look().status()
    }

    /// The status and what goes with it, of one look.
    pub(crate) fn state(&self) -> State {
        // Read first: what is answered after the look is not ahead of what the look says.
        let floor = self.floor.get();
        let look = self.look();
        let error_bound = match look.nanos {
            Some(nanos) => look.line_error().saturating_add(floor.saturating_sub(nanos)),
            None => self.ask(&look.record, look.ticks).map_or(0, |(now, answer)| answer - now),
        };
        State { status: look.status(), error_bound, frequency: look.record.frequency() }
    }

    /// The counter's rate in Hz, once it is measured.
    pub(crate) fn frequency(&self) -> Option<u64> {
        Record::from_words(&self.latch.load().words).frequency()
    }

    /// Whether the counter will be used, as far as can be told without measuring it. Asks the
    /// kernel.
    pub(crate) fn check(&self) -> Result<(), Status> {
        match Record::from_words(&self.latch.load().words).phase {
            Phase::Off(status) if !status.is_refusal() => Err(status),
            _ => self.source.trust(),
        }
    }
}

/// One consistent view of the clock.
struct Look {
    seen: Seen<WORDS>,
    record: Record,
    ticks: u64,
    /// The time of the tick, if there is a line for it.
    nanos: Option<u64>,
}

impl Look {
    fn status(&self) -> Status {
        match self.record.phase {
            Phase::Off(status) => status,
            Phase::Line if self.nanos.is_some() => Status::Used,
            _ if self.seen.is_claimed() => Status::Claimed,
            Phase::Line => Status::Stale,
            _ => Status::Calibrating,
        }
    }

    /// How far the line can be from the kernel's clock, in nanoseconds.
    fn line_error(&self) -> u64 {
        let Record { line, steady, .. } = self.record;
        let correction = line::nanos(line.span, line.rate.abs_diff(steady));
        NOISE.max(line::nanos(3, steady)) + correction + line.drift()
    }
}
