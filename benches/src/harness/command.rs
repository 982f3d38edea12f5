//! The command line of a bench, and its child processes.

use std::env;
use std::process::Command;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// One trial of a debug build, to see that the bench works.
    Trial,
    /// Less than a minute.
    Quick,
    /// Some minutes.
    Full,
}

impl Effort {
    /// Returns the value for this effort.
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
    /// Whether a missed limit is a failure.
    pub check: bool,
    /// Whether the documents are renewed.
    pub write: bool,
    filters: Vec<String>,
}

const USAGE: &str = "\
Usage: [--quick] [--check] [--write] [ROW...]

  --quick   less than a minute
  --check   status 1 if a limit is missed or cannot be measured
  --write   renew the tables of these rows, and their charts, in docs and README.md
  ROW       only the rows whose name contains one of these
";

impl Arguments {
    pub(super) fn parse(words: Vec<String>) -> Result<Self, String> {
        let mut is_quick = false;
        let mut check = false;
        let mut write = false;
        let mut filters = Vec::new();
        for word in words {
            match &*word {
                "--quick" => is_quick = true,
                "--check" => check = true,
                "--write" => write = true,
                "--bench" => {} // `cargo bench` passes it
                flag if flag.starts_with('-') => {
                    return Err(format!("unknown argument `{flag}`\n\n{USAGE}"));
                }
                _ => filters.push(word),
            }
        }
        let is_optimised = !cfg!(debug_assertions);
        let effort = if is_quick {
            Effort::Quick
        } else if is_optimised {
            Effort::Full
        } else if write {
            return Err("--write needs an optimised build".into());
        } else {
            Effort::Trial
        };
        Ok(Self {
            effort,
            check,
            write,
            filters,
        })
    }

    /// Returns whether rows can be left out.
    pub fn is_filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Returns whether a row of this name is measured.
    pub fn wants(&self, name: &str) -> bool {
        if !self.is_filtered() {
            return true;
        }
        for filter in &self.filters {
            if name.contains(filter) {
                return true;
            }
        }
        false
    }
}

/// The first argument of a child process.
pub const CHILD: &str = "--child";

/// Returns this program as a child process.
pub fn child(asked: &[&str]) -> Result<Command, String> {
    let program = env::current_exe();
    let program = program.map_err(|error| format!("the path of this program: {error}"))?;
    let mut command = Command::new(program);
    command.arg(CHILD).args(asked);
    Ok(command)
}

/// Runs a command, and returns what it printed.
pub fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{program}: {}: {}",
            output.status,
            error.trim_end()
        ));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}
