//! The command line of a bench: what cargo passes, how much is to be measured, and what.

use std::process::ExitCode;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Enough to see that it works: `cargo test --benches` passes no `--bench`.
    Trial,
    /// What `cargo bench` does.
    Quick,
    /// `cargo bench -- --full`
    Full,
}

impl Effort {
    /// The one of three that is this effort's.
    #[must_use]
    pub fn choose<T>(self, trial: T, quick: T, full: T) -> T {
        match self {
            Self::Trial => trial,
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// A command line.
pub struct Arguments {
    /// How much is measured.
    pub effort: Effort,
    /// Parts of the names of the rows that are wanted; none for all.
    pub filters: Vec<String>,
}

impl Arguments {
    /// Whether a row of this name is wanted.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter))
    }

    /// Whether everything is measured, and in earnest.
    #[must_use]
    pub fn are_complete(&self) -> bool {
        self.filters.is_empty() && self.effort != Effort::Trial
    }
}

/// What a bench starts itself with, when it needs a fresh process: this, then what is asked of it.
pub const CHILD: &str = "--child";

fn parse(arguments: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let (mut bench, mut full, mut filters) = (false, false, Vec::new());
    for argument in arguments {
        match argument.as_str() {
            "--bench" => bench = true,
            "--full" => full = true,
            flag if flag.starts_with('-') => return Err(format!("unknown argument `{flag}`")),
            _ => filters.push(argument),
        }
    }
    let effort = match (full, bench) {
        (true, _) => Effort::Full,
        (false, true) => Effort::Quick,
        (false, false) => Effort::Trial,
    };
    Ok(Arguments { effort, filters })
}

/// The `main` of a bench: `child` in a process that the bench started, which says what it measured on its standard
/// output, else `parent`.
pub fn main(
    parent: impl FnOnce(&Arguments) -> Result<(), String>,
    child: impl FnOnce(&[String]) -> Result<(), String>,
) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((first, asked)) if first == CHILD => child(asked),
        _ => match parse(arguments.into_iter()) {
            Ok(arguments) => parent(&arguments),
            Err(message) => {
                eprintln!("{message}\n\nUsage: cargo bench --bench NAME -- [--full] [ROW...]");
                return ExitCode::from(2);
            }
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
