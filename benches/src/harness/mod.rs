//! Measures the contenders of a row in interleaved batches.

mod assembly;
pub mod command;
pub mod limits;
pub mod load;
pub mod machine;
pub mod report;
pub mod samples;

use std::env;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use command::{Arguments, CHILD};
use load::Load;
use report::Report;

/// Runs a bench.
///
/// `child` runs in the processes that `parent` starts with [`child()`](command::child), and prints
/// its measurements.
pub fn main(
    child: impl FnOnce(&[String]) -> Result<(), String>,
    parent: impl FnOnce(&Arguments) -> Result<Report, String>,
) -> ExitCode {
    let load = Load::start();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((first, asked)) if first == CHILD => child(asked).map(|()| ExitCode::SUCCESS),
        _ => run(arguments, parent, &load),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

fn run(
    words: Vec<String>,
    parent: impl FnOnce(&Arguments) -> Result<Report, String>,
    load: &Load,
) -> Result<ExitCode, String> {
    let arguments = Arguments::parse(words)?;
    let report = parent(&arguments)?;
    report.finish(&arguments, load)
}

/// Returns the middle value, or the mean of the two middle values; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let low = values[(values.len() - 1) / 2];
    let high = values[values.len() / 2];
    f64::midpoint(low, high)
}

/// A row of a table: contenders, which are ways to the same answer.
pub struct Row {
    pub name: String,
    /// The last contender is measured twice, to show the noise.
    pub contenders: Vec<Contender>,
}

impl Row {
    pub fn new(name: impl Into<String>, contenders: impl IntoIterator<Item = Contender>) -> Self {
        Self {
            name: name.into(),
            contenders: contenders.into_iter().collect(),
        }
    }

    /// Adds contenders.
    #[must_use]
    pub fn with(mut self, contenders: impl IntoIterator<Item = Contender>) -> Self {
        self.contenders.extend(contenders);
        self
    }
}

/// A way to an answer: a call, in a loop for each spacing.
pub struct Contender {
    pub name: &'static str,
    loops: Vec<Loop>,
}

type Loop = Box<dyn Fn(Spacing, u64)>;

impl Contender {
    /// Creates a contender. Its call must pass the answer to [`black_box`](std::hint::black_box).
    pub fn new(name: &'static str, call: impl Fn() + Copy + 'static) -> Self {
        let loops = [
            at_each_place::<0>(call),
            at_each_place::<1>(call),
            at_each_place::<2>(call),
        ];
        Self {
            name,
            loops: loops.into_iter().flatten().collect(),
        }
    }

    /// Makes calls back to back.
    pub fn call(&self, calls: u64) {
        self.loops[0](Spacing::BackToBack, calls);
    }

    fn time(&self, layout: usize, spacing: Spacing, calls: u64) -> Duration {
        let start = Instant::now();
        self.loops[layout](spacing, calls);
        start.elapsed()
    }
}

/// Compiles a loop at four positions in a cache line, with a kind of
/// [`between`](assembly::between).
///
/// The speed of a short loop depends on both, so each contender has twelve loops, and the fastest
/// counts.
fn at_each_place<const KIND: usize>(call: impl Fn() + Copy + 'static) -> [Loop; 4] {
    [
        loop_at::<0, KIND>(call),
        loop_at::<1, KIND>(call),
        loop_at::<2, KIND>(call),
        loop_at::<3, KIND>(call),
    ]
}

/// Compiles a loop for one call. The copy of the call lets a captured function pointer stay in a
/// register.
fn loop_at<const PLACE: usize, const KIND: usize>(call: impl Fn() + Copy + 'static) -> Loop {
    Box::new(move |spacing, calls| {
        let call = call;
        if spacing == Spacing::Isolated {
            assembly::skip::<PLACE>();
            for _ in 0..calls {
                assembly::between::<KIND>();
                call();
                assembly::fence();
            }
        } else {
            assembly::skip::<PLACE>();
            for _ in 0..calls {
                call();
            }
        }
    })
}

/// The gap between two calls of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// A fence, whose own cost is subtracted. This is what a single call costs a program.
    Isolated,
    /// Nothing. The CPU overlaps the calls.
    BackToBack,
}

impl Spacing {
    pub const ALL: [Self; 2] = [Self::Isolated, Self::BackToBack];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::BackToBack => "back to back",
        }
    }
}

/// Long compared with a clock read, short compared with the time between two interrupts.
const BATCH: Duration = Duration::from_micros(50);

/// Returns the nanoseconds of a call of each contender, from its fastest batch. The last two
/// figures both belong to the last contender, from the loops at even and at odd positions.
///
/// Each round has a batch of each contender, so a slow phase of the machine affects all of them.
pub fn measure(contenders: &[Contender], spacing: Spacing, rounds: usize) -> Vec<f64> {
    let empty = Contender::new("", || ());
    let contenders: Vec<&Contender> = contenders.iter().chain([&empty]).collect();
    let calls = contenders.iter().map(|one| calls_of_batch(one, spacing));
    let calls: Vec<u64> = calls.collect();
    let mut fastest = vec![Fastest::default(); contenders.len()];
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            let at = (round + turn) % contenders.len();
            let layout = round / contenders.len() % contenders[at].loops.len();
            let time = contenders[at].time(layout, spacing, calls[at]);
            let nanos = time.as_secs_f64() * 1e9 / calls[at] as f64;
            fastest[at].add(layout, nanos);
        }
    }
    let fences = match fastest.pop() {
        Some(empty) if spacing == Spacing::Isolated => empty.both(),
        _ => 0.0,
    };
    let mut nanos: Vec<f64> = fastest.iter().map(|one| one.both() - fences).collect();
    if let Some(last) = fastest.last() {
        nanos.push(last.even - fences);
        nanos.push(last.odd - fences);
    }
    nanos
}

/// The fastest batch of a contender, from the loops at even and at odd positions.
#[derive(Clone, Copy)]
struct Fastest {
    even: f64,
    odd: f64,
}

impl Default for Fastest {
    fn default() -> Self {
        Self {
            even: f64::INFINITY,
            odd: f64::INFINITY,
        }
    }
}

impl Fastest {
    fn add(&mut self, layout: usize, nanos: f64) {
        let half = if layout % 2 == 0 {
            &mut self.even
        } else {
            &mut self.odd
        };
        *half = half.min(nanos);
    }

    fn both(self) -> f64 {
        self.even.min(self.odd)
    }
}

/// The largest number of calls in a batch. No call is so short that a batch needs more, but the
/// compiler deletes a loop of calls that do nothing, which fills no batch.
const MOST_CALLS: u64 = 1 << 20;

/// Returns how many calls fill a batch three times in a row. The first ones are the warm-up.
fn calls_of_batch(contender: &Contender, spacing: Spacing) -> u64 {
    let mut calls = 1;
    while calls < MOST_CALLS && (0..3).any(|_| contender.time(0, spacing, calls) < BATCH) {
        calls *= 2;
    }
    calls
}
