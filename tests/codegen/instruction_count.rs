//! The promise: the slot costs one instruction, its load. A `Result` costs a test of the returned
//! value, a branch on it that is not taken, and the stores that initialise the answer. There is no
//! other branch.
//!
//! The cost is the instructions of a turn of a loop over the crate's function, minus those of the
//! same loop over a pointer to the vDSO's. Both are counted in the compiler's listing.
//! `cargo xtask msrv test --test codegen instruction_count -- --nocapture` prints the numbers for
//! each architecture, which docs/BENCHMARKS.md has.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use test_support::cost::{self, Cost};
use test_support::program;

use crate::{FLAGS, place, source};

/// - The target.
/// - How a test of a returned `int` begins in its listing.
/// - The instructions of such a test with its branch.
/// - The instructions that initialise the answer's 16 bytes.
/// - The most instructions of the adapter that makes microseconds for `gettimeofday`.
type Target = (&'static str, &'static str, i64, i64, Option<usize>);

const TARGETS: [Target; 8] = [
    ("x86_64-unknown-linux-gnu", "testl\t%eax, %eax", 2, 2, None),
    ("aarch64-unknown-linux-gnu", "cbnz\tw0", 1, 2, None),
    (
        "armv7-unknown-linux-gnueabihf",
        "cmp\tr0, #0",
        2,
        4,
        Some(24),
    ),
    (
        "i686-unknown-linux-gnu",
        "testl\t%eax, %eax",
        2,
        2,
        Some(32),
    ),
    ("riscv64gc-unknown-linux-gnu", "bnez\ta0", 1, 2, None),
    ("s390x-unknown-linux-gnu", "cijlh\t%r2, 0", 1, 2, None),
    ("loongarch64-unknown-linux-gnu", "bnez\t$a0", 1, 2, None),
    ("powerpc64le-unknown-linux-gnu", "cmplwi\t3, 0", 2, 2, None),
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

/// Returns the instructions of the adapter of `gettimeofday`.
fn adapter(triple: &str) -> Vec<String> {
    let to = place(&format!("adapter-{triple}.s"));
    let listing =
        String::from_utf8(program::emit("asm", triple, &source(), FLAGS, &to).unwrap()).unwrap();
    cost::instructions(&listing, "gettimeofday_from_clock_gettime")
        .map(str::to_string)
        .collect()
}

#[test]
fn a_read_costs_one_load_and_the_test_of_its_result_more_than_a_direct_call() {
    let mut table = String::new();
    let mut wrong = Vec::new();
    for (triple, test, check, stores, adapter_most) in TARGETS {
        // The two parts must agree on panics.
        let settings = [("CARGO_PROFILE_RELEASE_PANIC", "unwind")];
        let library = program::library(["vdso-time", ""], triple, "instruction-count", &settings);
        let source = "tests/codegen/programs/loops.rs";
        let listing = library.and_then(|library| program::listing(triple, source, &library, &[]));
        let Some(listing) = listing else { continue };
        let ident = listing
            .split_once("rustc version ")
            .map_or("", |(_, ident)| ident);
        let minor: Vec<&str> = ident.split('.').take(2).collect();
        let compiler = format!("| {triple} | {} |", minor.join("."));
        let mut row = compiler.clone();
        for read in READS.into_iter().chain([SYSTEM_TIME]) {
            let of = |whose| Cost::of_turn(&listing, &format!("{whose}_{read}"), test);
            let (direct, ours) = (of("direct"), of("our"));
            let more = ours.less(direct);
            let mut cell = format!(" {}", ours.instructions);
            if let Some(most) = adapter_most.filter(|_| read == "gettimeofday") {
                let adapter = adapter(triple);
                write!(cell, " + {}", adapter.len()).unwrap();
                let divides =
                    |line: &String| DIVISIONS.iter().any(|division| line.contains(division));
                if adapter.len() > most || adapter.iter().any(divides) {
                    wrong.push(format!(
                        "{triple}: gettimeofday's adapter:\n{}",
                        adapter.join("\n")
                    ));
                }
            }
            write!(cell, " / {} |", direct.instructions).unwrap();
            if read == SYSTEM_TIME {
                println!("| {triple} | SystemTime::now |{cell}");
            } else {
                row += &cell;
            }
            // `time` alone has no failure to look for.
            let checks = i64::from(read != "time");
            let bit = if read == SYSTEM_TIME { BIT } else { 0 };
            let instructions = 1 + checks * (check + stores) + bit;
            let allowed = Cost {
                instructions,
                branches: 0,
                checks,
            };
            let is_good = more.instructions <= allowed.instructions
                && (more.branches, more.checks) == (allowed.branches, allowed.checks);
            if !is_good {
                wrong.push(format!("{triple}: {read}: {more:?}, not {allowed:?}"));
            }
        }
        // The page has a row for each target, from one compiler or more.
        let page = fs::read_to_string(Path::new(program::ROOT).join("docs/BENCHMARKS.md")).unwrap();
        let is_of = |start: String| move |line: &&str| line.starts_with(&start);
        let of_target = page.lines().find(is_of(format!("| {triple} |")));
        if page
            .lines()
            .find(is_of(compiler))
            .or(of_target.and(Some(&row)))
            != Some(&row)
        {
            wrong.push(format!("docs/BENCHMARKS.md lacks: {row}"));
        }
        writeln!(table, "{row}").unwrap();
    }
    print!("{table}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
