//! The promise: the slot costs one instruction, its load. A `Result` costs a test of the returned
//! value, a branch on it that is not taken, and the stores that initialise the answer. There is no
//! other branch.
//!
//! The cost is the instructions of one iteration of a loop over the crate's function, minus the
//! instructions of the same loop over a pointer to the vDSO's. Both are counted in the compiler's
//! listing. `cargo xtask msrv test --test codegen instruction_count -- --nocapture` prints the
//! numbers for each architecture, which docs/BENCHMARKS.md has.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use test_support::cost::{self, Cost};
use test_support::program;

use crate::{FLAGS, place, source};

struct Target {
    triple: &'static str,
    /// How a test of a returned `int` begins in the listing.
    test: &'static str,
    /// The instructions of such a test with its branch.
    check: i64,
    /// The instructions that initialise the answer's 16 bytes.
    stores: i64,
    /// The most instructions of the adapter that makes microseconds for `gettimeofday`.
    adapter: Option<usize>,
}

const fn target(triple: &'static str, test: &'static str, check: i64, stores: i64) -> Target {
    Target {
        triple,
        test,
        check,
        stores,
        adapter: None,
    }
}

const TARGETS: [Target; 8] = [
    target("x86_64-unknown-linux-gnu", "testl\t%eax, %eax", 2, 2),
    target("aarch64-unknown-linux-gnu", "cbnz\tw0", 1, 2),
    Target {
        adapter: Some(24),
        ..target("armv7-unknown-linux-gnueabihf", "cmp\tr0, #0", 2, 4)
    },
    Target {
        adapter: Some(32),
        ..target("i686-unknown-linux-gnu", "testl\t%eax, %eax", 2, 2)
    },
    target("riscv64gc-unknown-linux-gnu", "bnez\ta0", 1, 2),
    target("s390x-unknown-linux-gnu", "cijlh\t%r2, 0", 1, 2),
    target("loongarch64-unknown-linux-gnu", "bnez\t$a0", 1, 2),
    target("powerpc64le-unknown-linux-gnu", "cmplwi\t3, 0", 2, 2),
];

/// A function whose result needs no test, two that return a `Result`, and one that may panic. The
/// others have a slot of the same kind.
const READS: [&str; 4] = ["time", "gettimeofday", "clock_gettime", "instant_now"];

/// The page has no column for it. It costs what `clock_gettime` costs, and to set and to clear the
/// bit that makes `Option<SystemTime>` as small as std's.
const SYSTEM_TIME: &str = "system_time_now";
const BIT: i64 = 2;

/// The functions that divide 64 bits on 32-bit targets.
const DIVISIONS: [&str; 2] = ["__aeabi_ldivmod", "__divdi3"];

impl Target {
    /// Returns the listing of the loops; `None` without the target's libraries.
    fn listing(&self) -> Option<String> {
        // The two parts must agree on panics.
        let settings = [("CARGO_PROFILE_RELEASE_PANIC", "unwind")];
        let library = program::library(
            ["vdso-time", ""],
            self.triple,
            "instruction-count",
            &settings,
        )?;
        program::listing(
            self.triple,
            "tests/codegen/programs/loops.rs",
            &library,
            &[],
        )
    }

    /// Returns the most that a read may cost more than a direct call.
    fn allowed(&self, read: &str) -> Cost {
        let load = 1;
        // `time` alone has no failure to look for.
        let checks = i64::from(read != "time");
        let bit = if read == SYSTEM_TIME { BIT } else { 0 };
        Cost {
            instructions: load + checks * (self.check + self.stores) + bit,
            branches: 0,
            checks,
        }
    }

    /// Returns the instructions of the adapter of `gettimeofday`. There must be at most `most`, and
    /// none may divide.
    fn adapter(&self, most: usize, wrong: &mut Vec<String>) -> usize {
        let to = place(&format!("adapter-{}.s", self.triple));
        let listing = program::emit("asm", self.triple, &source(), FLAGS, &to).unwrap();
        let listing = String::from_utf8(listing).unwrap();
        let instructions: Vec<&str> =
            cost::instructions(&listing, "gettimeofday_from_clock_gettime").collect();
        let text = instructions.join("\n");
        let divides = DIVISIONS.iter().any(|division| text.contains(division));
        if instructions.len() > most || divides {
            wrong.push(format!("{}: gettimeofday's adapter:\n{text}", self.triple));
        }
        instructions.len()
    }

    /// Returns the target's row of the page, and adds what is wrong.
    fn row(&self, listing: &str, wrong: &mut Vec<String>) -> String {
        let triple = self.triple;
        let mut row = row_start(triple, listing);
        for read in READS.into_iter().chain([SYSTEM_TIME]) {
            let direct = Cost::of_turn(listing, &format!("direct_{read}"), self.test);
            let ours = Cost::of_turn(listing, &format!("our_{read}"), self.test);
            let mut cell = format!(" {}", ours.instructions);
            if let Some(most) = self.adapter {
                if read == "gettimeofday" {
                    write!(cell, " + {}", self.adapter(most, wrong)).unwrap();
                }
            }
            write!(cell, " / {} |", direct.instructions).unwrap();
            if read == SYSTEM_TIME {
                println!("| {triple} | SystemTime::now |{cell}");
            } else {
                row += &cell;
            }
            let more = ours.less(direct);
            let allowed = self.allowed(read);
            let is_good = more.instructions <= allowed.instructions
                && more.branches == allowed.branches
                && more.checks == allowed.checks;
            if !is_good {
                wrong.push(format!("{triple}: {read}: {more:?}, not {allowed:?}"));
            }
        }
        row
    }
}

/// Returns the first cells of a row: the target, and the compiler's version as in "1.95".
fn row_start(triple: &str, listing: &str) -> String {
    let (_, ident) = listing.split_once("rustc version ").unwrap_or_default();
    let minor: Vec<&str> = ident.split('.').take(2).collect();
    format!("| {triple} | {} |", minor.join("."))
}

/// Returns whether the page has this row. It has a row for each target, from one compiler or more.
/// The row of a compiler that the page does not have is not compared.
fn page_has(page: &str, row: &str, triple: &str, row_start: &str) -> bool {
    match page.lines().find(|line| line.starts_with(row_start)) {
        Some(line) => line == row,
        None => page
            .lines()
            .any(|line| line.starts_with(&format!("| {triple} |"))),
    }
}

#[test]
fn a_read_costs_one_load_and_the_test_of_its_result_more_than_a_direct_call() {
    let page = fs::read_to_string(Path::new(program::ROOT).join("docs/BENCHMARKS.md")).unwrap();
    let mut table = String::new();
    let mut wrong = Vec::new();
    for target in &TARGETS {
        let Some(listing) = target.listing() else {
            continue;
        };
        let row = target.row(&listing, &mut wrong);
        if !page_has(
            &page,
            &row,
            target.triple,
            &row_start(target.triple, &listing),
        ) {
            wrong.push(format!("docs/BENCHMARKS.md lacks: {row}"));
        }
        writeln!(table, "{row}").unwrap();
    }
    print!("{table}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
