//! Rows of contenders, and the batches in which their calls are timed.

pub mod arguments;
mod assembly;
pub mod machine;
pub mod process;
pub mod report;
pub mod samples;
pub mod stats;

use std::time::{Duration, Instant};

/// A row of a table: some ways to the same answer.
pub struct Row {
    /// What is answered.
    pub name: String,
    /// Who answers.
    pub contenders: Vec<Contender>,
}

impl Row {
    /// The contender of this name.
    #[must_use]
    pub fn contender(&self, name: &str) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.name == name)
    }
}

/// One way to an answer.
pub struct Contender {
    /// Its name, a column of the tables.
    pub name: &'static str,
    loops: [Loop; PLACEMENTS],
}

/// Makes so many calls.
type Loop = Box<dyn Fn(Spacing, u64)>;

/// A short loop runs a cycle faster or slower by where in a cache line its code happens to lie, so each is there as often as
/// a line has places for it, and the fastest counts.
const PLACEMENTS: usize = 4;

impl Contender {
    /// A contender that makes this call, which must hand what it got to [`black_box`](std::hint::black_box).
    pub fn new(name: &'static str, call: impl Fn() + Copy + 'static) -> Self {
        let loops = [loop_at::<0>(call), loop_at::<1>(call), loop_at::<2>(call), loop_at::<3>(call)];
        Self { name, loops }
    }

    /// Makes so many calls.
    pub fn run(&self, spacing: Spacing, calls: u64) {
        self.loops[0](spacing, calls);
    }

    /// How long so many calls take, by the loop in this place.
    fn time_at(&self, place: usize, spacing: Spacing, calls: u64) -> Duration {
        let start = Instant::now();
        self.loops[place % PLACEMENTS](spacing, calls);
        start.elapsed()
    }

    /// How long so many calls take.
    #[must_use]
    pub fn time(&self, spacing: Spacing, calls: u64) -> Duration {
        self.time_at(0, spacing, calls)
    }
}

/// A loop compiled for this very call: what is dynamic is paid once a batch. The call is copied into the loop's frame, so that what
/// it captured, a function pointer say, stays in a register.
fn loop_at<const PLACE: usize>(call: impl Fn() + Copy + 'static) -> Loop {
    Box::new(move |spacing, calls| {
        let call = call;
        match spacing {
            Spacing::BackToBack => {
                assembly::skip::<PLACE>();
                for _ in 0..calls {
                    call();
                }
            }
            Spacing::Isolated => {
                assembly::skip::<PLACE>();
                for _ in 0..calls {
                    call();
                    assembly::wait();
                }
            }
        }
    })
}

/// What stands between two calls of a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Nothing: the CPU overlaps one call with the next.
    BackToBack,
    /// A fence that waits until the call is done, its own cost subtracted: the call as a program sees it that makes one.
    Isolated,
}

impl Spacing {
    /// Both.
    pub const ALL: [Self; 2] = [Self::BackToBack, Self::Isolated];

    /// As the tables have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BackToBack => "back to back",
            Self::Isolated => "isolated",
        }
    }
}

/// A batch: long beside the reading of the clock that times it, short beside the time between two interrupts.
const BATCH: Duration = Duration::from_micros(50);

/// The nanoseconds of a call of each contender: the fastest of its batches, which the interrupts spared.
///
/// A round has one batch of each, so that a machine that slows down slows down all; each round begins with the next one.
#[must_use]
pub fn measure(contenders: &[&Contender], spacing: Spacing, rounds: usize) -> Vec<f64> {
    let nothing = Contender::new("", || ());
    let mut contenders = contenders.to_vec();
    contenders.push(&nothing);
    let calls: Vec<u64> = contenders.iter().map(|contender| calls_of_batch(contender, spacing)).collect();
    let mut fastest = vec![f64::INFINITY; contenders.len()];
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            let at = (round + turn) % contenders.len();
            let time = contenders[at].time_at(round / contenders.len(), spacing, calls[at]);
            fastest[at] = fastest[at].min(nanos_per_call(time, calls[at]));
        }
    }
    let nothing = fastest.pop().filter(|_| spacing == Spacing::Isolated).unwrap_or(0.0);
    fastest.iter().map(|nanos| nanos - nothing).collect()
}

/// How many calls take as long as a batch should: three times in a row, lest a first call or an interrupt seem the rule. The
/// first ones are the warm-up.
fn calls_of_batch(contender: &Contender, spacing: Spacing) -> u64 {
    let long = |&calls: &u64| (0..3).all(|_| contender.time(spacing, calls) >= BATCH);
    (0..u64::BITS).map(|power| 1 << power).find(long).unwrap_or(1)
}

/// The nanoseconds of one call of a batch.
#[must_use]
pub fn nanos_per_call(batch: Duration, calls: u64) -> f64 {
    batch.as_secs_f64() * 1e9 / calls as f64
}
