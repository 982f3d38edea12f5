//! Programs that link one contender each: their size, the time from start to end, and the first call.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use goblin::elf::Elf;
use goblin::elf::section_header::SHF_EXECINSTR;
use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::command::run;
use vdso_time_benches::harness::document::Table;
use vdso_time_benches::harness::samples::Samples;

/// The contenders: the cfg of `examples/start.rs`, and the package.
const CONTENDERS: [(&str, Option<&str>); 11] = [
    ("nothing", None),
    ("vdso-time", Some("vdso-time")),
    ("counter", Some("vdso-time")),
    ("std", None),
    ("libc", Some("libc")),
    ("rustix", Some("rustix")),
    ("clocksource", Some("clocksource")),
    ("coarsetime", Some("coarsetime")),
    ("quanta", Some("quanta")),
    ("minstant", Some("minstant")),
    ("fastant", Some("fastant")),
];

const START: &str = "start to end";
const FAULTS: &str = "page faults";
pub const FIRST: &str = "first call";
/// The first call after std has read the time, which has touched the vDSO's pages.
const AFTER_STD: &str = "first call, after std's";

/// A built program.
pub struct Program {
    name: &'static str,
    path: PathBuf,
    code: i64,
    packages: usize,
}

/// Builds the programs.
pub fn build(folder: &Path) -> Result<Vec<Program>, String> {
    let cargo = || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("RUSTFLAGS");
        cargo
    };
    let program = |&(name, package): &(&'static str, Option<&str>)| {
        let cfg = format!("contender=\"{name}\"");
        let target = folder.join("start");
        let arguments = ["rustc", "--quiet", "--locked", "--release", "--example", "start", "--target-dir"];
        run(cargo().args(arguments).arg(&target).args(["--", "--cfg", &cfg]))?;
        let path = folder.join(format!("start-{name}"));
        let error = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        fs::copy(target.join("release/examples/start"), &path).map_err(|cause| error(&cause))?;
        let bytes = fs::read(&path).map_err(|cause| error(&cause))?;
        let elf = Elf::parse(&bytes).map_err(|cause| error(&cause))?;
        let is_code = |flags: u64| flags & u64::from(SHF_EXECINSTR) != 0;
        let sections = elf.section_headers.iter().filter(|section| is_code(section.sh_flags));
        let code = sections.map(|section| section.sh_size as i64).sum();
        let tree = package.map_or(Ok(String::new()), |package| {
            run(cargo().args([
                "tree",
                "--locked",
                "--edges",
                "normal",
                "--prefix",
                "none",
                "--package",
                package,
            ]))
        })?;
        let packages = tree.lines().filter_map(|line| line.split(' ').next()).collect::<BTreeSet<_>>().len();
        Ok(Program { name, path, code, packages })
    };
    CONTENDERS.iter().map(program).collect()
}

/// Starts each program `times` times, in turns.
pub fn start(programs: &[Program], times: usize) -> Result<Samples, String> {
    let mut samples = Samples::default();
    for program in (0..times).flat_map(|_| programs) {
        let mut add = |row, value: &str| samples.add(&format!("{row}\tisolated\t{}\t{value}", program.name));
        let start = Instant::now();
        let status = Command::new(&program.path).stdin(Stdio::null()).status();
        let nanos = start.elapsed().as_nanos();
        status.map_err(|error| format!("{}: {error}", program.path.display()))?;
        add(START, &nanos.to_string())?;
        for (row, argument) in [(AFTER_STD, "again"), (FIRST, "first")] {
            let text = run(Command::new(&program.path).arg(argument))?;
            let (nanos, faults) = text.trim().split_once('\t').ok_or("a program printed something else")?;
            add(row, nanos)?;
            if row == FIRST {
                add(FAULTS, faults)?;
            }
        }
    }
    Ok(samples)
}

/// Returns what is known of the programs.
pub fn table(programs: &[Program], samples: &Samples) -> Table {
    let head = ["program", START, FIRST, AFTER_STD, FAULTS, "code, bytes", "crates"];
    let mut table = Table::new("peers-programs", &head);
    for program in programs {
        let of = |row| samples.nanos(row, Spacing::Isolated, program.name).unwrap_or(f64::NAN);
        table.rows.push(vec![
            program.name.into(),
            format!("{:.0} us", of(START) / 1e3),
            format!("{:.1} us", of(FIRST) / 1e3),
            format!("{:.1} us", of(AFTER_STD) / 1e3),
            format!("{:.0}", of(FAULTS)),
            format!("{:+}", program.code - programs[0].code),
            program.packages.to_string(),
        ]);
    }
    table
}
