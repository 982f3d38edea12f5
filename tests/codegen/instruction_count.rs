//! The promise: the slot costs one instruction, its load. A `Result` costs a test of the returned
//! value, a branch on it that is not taken, and the stores that initialise the answer. There is no
//! other branch.
//!
//! The cost is the instructions of a turn of a loop over the crate's function, minus those of the
//! same loop over a pointer to the vDSO's.
//! `cargo test --test codegen instruction_count -- --nocapture` prints the numbers.

use std::fs;
use std::path::PathBuf;

use crate::loops::{READS, Read};
use test_support::cost::Cost;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
use test_support::stepper;
use test_support::{not_run_here, program};

struct Target {
    triple: &'static str,
    /// How a test of a returned `int` begins in a listing.
    test: &'static str,
    /// The instructions of such a test and of the branch on it; on aarch64 one is both.
    check: i64,
    /// The instructions that initialise the answer: 16 bytes, or getcpu's two words.
    stores: i64,
    /// Reads of which only the branches are held to the bar.
    loose: &'static [&'static str],
}

const X86_64: Target =
    Target { triple: "x86_64-unknown-linux-gnu", test: "testl\t%eax, %eax", check: 2, stores: 2, loose: &[] };
const AARCH64: Target =
    Target { triple: "aarch64-unknown-linux-gnu", test: "cbnz\tw0", check: 1, stores: 2, loose: &[] };
const ARM: Target =
    Target { triple: "armv7-unknown-linux-gnueabihf", test: "cmp\tr0, #0", check: 2, stores: 4, loose: &[] };
/// Arguments go on the stack. Whether they are pushed or stored is decided for a function as a
/// whole: the call after a failure, which the direct loop does not have, changes that. And getcpu's
/// loops run out of registers.
const X86: Target = Target { triple: "i686-unknown-linux-gnu", loose: &["gettimeofday", "getcpu"], ..X86_64 };

/// The lines of a target, and what is wrong with them.
struct Table {
    lines: String,
    wrong: Vec<String>,
}

impl Table {
    fn new(target: &Target, way: &str) -> Self {
        let lines = format!("{}, {way}\n{:14} direct ours difference\n", target.triple, "read");
        Self { lines, wrong: Vec::new() }
    }

    fn row(&mut self, read: &Read, target: &Target, direct: Cost, ours: Cost) {
        let more = ours.less(direct).instructions;
        let row = format!("{:14} {:6} {:4} {more:+10}\n", read.name, direct.instructions, ours.instructions);
        self.lines.push_str(&row);
        self.wrong.extend(compare(read, target, ours.less(direct)));
    }

    /// All at once, because the tests run side by side.
    fn print(self) -> Vec<String> {
        print!("{}", self.lines);
        self.wrong
    }
}

/// What is wrong with the difference of two loops.
fn compare(read: &Read, target: &Target, more: Cost) -> Option<String> {
    let name = read.name;

    // `time` alone has no failure to look for.
    let checks = i64::from(name != "time");
    let mut allowed = Cost { instructions: 1 + checks * (target.check + target.stores), branches: 0, checks };
    if target.loose.contains(&name) {
        allowed.instructions = more.instructions;
    }
    let is_good = more.instructions <= allowed.instructions
        && (more.branches, more.checks) == (allowed.branches, allowed.checks);
    (!is_good).then(|| format!("{}: {name}: {more:?}, not {allowed:?}", target.triple))
}

/// Makes the program of the loops, or its listing; the error says what is missing here.
fn build(target: &Target, emit: &str) -> Result<PathBuf, String> {
    let triple = target.triple;
    // The two parts must agree on panics.
    let library =
        program::library(triple, "instruction-count", &[("CARGO_PROFILE_RELEASE_PANIC", "unwind")])?;
    let built = library.with_file_name(format!("loops.{emit}"));
    let flags = ["-Copt-level=3", "-Ccodegen-units=1", "--emit", emit];
    program::compile(triple, "tests/codegen/loops.rs", &library, &flags, &built)?;
    Ok(built)
}

/// A turn of a loop, in a listing: from the first label that a branch goes back to, to that branch.
fn turn(listing: &str, function: &str, target: &Target) -> Cost {
    let mut lines = listing.lines().map(str::trim);
    lines.find(|line| line.ends_with(':') && line.contains(function)).expect(function);
    let lines = lines.take_while(|line| line.starts_with('.') || !line.ends_with(':'));
    let mut labels = Vec::new();
    let (mut cost, mut before) = (Cost::default(), "");
    for line in lines {
        if let Some(label) = line.strip_suffix(':') {
            labels.push((label, cost));
        } else if !line.starts_with(['.', '#', '@', '/']) {
            cost.instructions += 1;
            if let Some(at) = line.find(".LBB") {
                let back = labels.iter().find(|(label, _)| *label == &line[at..]);
                let check = back.is_none() && [before, line].iter().any(|line| line.starts_with(target.test));
                *(if check { &mut cost.checks } else { &mut cost.branches }) += 1;
                if let Some((_, start)) = back {
                    return cost.less(*start);
                }
            }
            before = line;
        }
    }
    panic!("{function} has no loop")
}

#[test]
fn the_loops_as_they_are_listed() {
    let mut wrong = Vec::new();
    for target in [X86_64, AARCH64, ARM, X86] {
        let listing = match build(&target, "asm") {
            Ok(listing) => fs::read_to_string(listing).unwrap(),
            Err(why) => {
                not_run_here(target.triple, why);
                continue;
            }
        };
        let mut table = Table::new(&target, "listed");
        for read in READS {
            let of = |whose| turn(&listing, &format!("{whose}_{}", read.name), &target);
            table.row(read, &target, of("direct"), of("our"));
        }
        wrong.extend(table.print());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A loop is the difference of two runs, without what is done before and after it.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
#[test]
fn the_loops_as_they_are_executed() {
    use crate::loops::TURNS;
    use stepper::{Section, Stepper};

    if !test_support::has_proc() {
        return;
    }
    let start = |program: PathBuf| {
        let mut command = std::process::Command::new(program);
        // So that getcpu is the vDSO's.
        command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        Stepper::start(command).map_err(|error| format!("ptrace: {error}"))
    };
    let stepper = match build(&X86_64, "link").and_then(start) {
        Ok(stepper) => stepper,
        Err(why) => return not_run_here("ptrace", why),
    };
    let per_turn = |once: &Section, twice: &Section| {
        twice.cost.with(once.cost, |twice, once| {
            assert_eq!((twice - once) % TURNS as i64, 0, "the turns of a loop differ");
            (twice - once) / TURNS as i64
        })
    };
    let mut table = Table::new(&X86_64, "executed");
    for read in READS {
        if read.function().is_none() {
            not_run_here("ptrace", format_args!("{}: the vDSO has no such function", read.name));
            continue;
        }
        let [direct, direct_twice, ours, ours_twice] = [(); 4].map(|()| stepper.section().unwrap());
        for (direct, ours, turns) in [(&direct, &ours, TURNS), (&direct_twice, &ours_twice, 2 * TURNS)] {
            assert_eq!(direct.entries.len(), turns, "{}: not one call a turn", read.name);
            assert_eq!(ours.entries, direct.entries, "{}: not the same function", read.name);
        }
        table.row(read, &X86_64, per_turn(&direct, &direct_twice), per_turn(&ours, &ours_twice));
    }
    let wrong = table.print();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
#[test]
fn the_loops_as_they_are_executed() {
    not_run_here("ptrace", "only x86_64's instructions are executed one by one");
}
