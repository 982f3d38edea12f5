//! `cargo xtask fuzz`: the fuzz targets, led by coverage, with the installed compiler: neither a nightly one nor cargo-fuzz is
//! needed. What those have on top is AddressSanitizer.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::process::{output, stdout, step};
use crate::{Error, cache, workspace};

pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Those of libFuzzer; the path is relative to `fuzz`.
    arguments: &'static [&'static str],
}

/// Each with the size of its largest useful input: 8 bytes for each change of an image.
pub(crate) const TARGETS: &[Target] = &[Target { name: "image", arguments: &["-max_len=65"] }];

/// What lets libFuzzer see where a run went, and what it compared; sums that go over are found, as in a debug build.
pub(crate) const GUIDED: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
];

const SECONDS: u32 = 20;

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let (seconds, names) = match arguments {
        [option, seconds, names @ ..] if option == "--seconds" => {
            let wrong = |_| Error::Usage(format!("`{seconds}` is no number of seconds"));
            (seconds.parse().map_err(wrong)?, names)
        }
        names => (SECONDS, names),
    };
    let target = |name: &String| {
        let found = TARGETS.iter().find(|target| target.name == *name);
        found.ok_or_else(|| Error::Usage(format!("no fuzz target `{name}`")))
    };
    let chosen: Vec<&Target> = names.iter().map(target).collect::<Result<_, _>>()?;
    let chosen = if chosen.is_empty() { TARGETS.iter().collect() } else { chosen };
    let root = workspace::root();
    let programs = build_with(Command::new(workspace::cargo()), GUIDED, &root, &root.join("target/fuzz"))?;
    for target in chosen {
        step(&format!("{} for {seconds} s", target.name));
        let corpus = root.join("fuzz/corpus").join(target.name);
        cache::create(&corpus)?;
        cache::create(&root.join("fuzz/artifacts"))?;
        let mut command = target.command(&programs, &root);
        command.args([&format!("-max_total_time={seconds}"), "-print_final_stats=1", "-verbosity=0"]);
        command.arg("-artifact_prefix=artifacts/");
        let output = output(command.arg(corpus))?;
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(Error::Failed(format!("{} found something\n{text}", target.name)));
        }
        println!("{}: {} runs", target.name, runs(&text));
    }
    Ok(ExitCode::SUCCESS)
}

impl Target {
    /// The program, which is to be told how long it runs, and which corpus it has.
    pub(crate) fn command(&self, programs: &Path, root: &Path) -> Command {
        let mut command = Command::new(programs.join(self.name));
        command.current_dir(root.join("fuzz")).args(self.arguments);
        command
    }
}

/// How many runs there were, by libFuzzer's final statistics.
pub(crate) fn runs(text: &str) -> &str {
    let count = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    count.unwrap_or("?").trim()
}

/// The folder of the targets of the tree at `root`, built by this cargo with these flags of the compiler.
pub(crate) fn build_with(
    mut cargo: Command,
    flags: &[&str],
    root: &Path,
    target_folder: &Path,
) -> Result<PathBuf, String> {
    let version = stdout(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    cargo
        .args(["build", "--release", "--locked", "--bins", "--manifest-path"])
        .arg(root.join("fuzz/Cargo.toml"))
        // With a target named, the flags are not those of build scripts.
        .args(["--target", host, "--target-dir"])
        .arg(target_folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    stdout(&mut cargo)?;
    Ok(target_folder.join(host).join("release"))
}
