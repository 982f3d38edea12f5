//! The promise: a clock read makes no system call if the vDSO can read the clock source.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use test_support::child::this_program;
use test_support::{CLOCKS, has_tool, not_run_here, oracle};
use vdso_time::{ClockId, Instant, SystemTime};

const READS: u32 = 10_000;
const TASK: &str = "VDSO_TIME_TEST_STRACE";

/// Every call that answers one of the functions, on one architecture or the other.
const CLOCK_CALLS: &str =
    "?time,?gettimeofday,?clock_gettime,?clock_gettime64,?clock_getres,?clock_getres_time64,?getcpu";

fn read_all() {
    for _ in 0..READS {
        // All but the two clocks of CPU time, which the vDSO does not have.
        for clock in &CLOCKS[..7] {
            assert!(vdso_time::clock_gettime(*clock).is_ok() && vdso_time::clock_getres(*clock).is_ok());
        }
        assert!(vdso_time::time() > 0 && vdso_time::gettimeofday().is_ok());
        assert!(!Instant::now().elapsed().is_zero() || SystemTime::now() > SystemTime::UNIX_EPOCH);
        #[cfg(target_arch = "x86_64")] // the others have no getcpu in their vDSO, or not for long
        assert!(vdso_time::getcpu().is_ok());
    }
    // One that is seen, so that seeing none means something.
    assert!(vdso_time::clock_gettime(ClockId::THREAD_CPUTIME).is_ok());
}

#[test]
fn a_read_makes_no_system_call() {
    if env::var_os(TASK).is_some() {
        return read_all();
    }
    if oracle::counter_is_in_user_space() != Some(true) {
        return not_run_here("clocksource", "the vDSO cannot read the clock source");
    }
    if !oracle::kernel_is(5, 5) {
        return not_run_here("kernel", "older vDSOs have not all of the clocks");
    }
    if !has_tool(&["strace", "-o", "/dev/null", "true"]) {
        return;
    }
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("strace-{}", std::process::id()));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qqq", "-e", &format!("trace={CLOCK_CALLS}"), "-e", "signal=none", "-o"]).arg(&trace);
    strace.arg(this_program()).args(["--exact", "strace::a_read_makes_no_system_call"]).env(TASK, "");
    let output = strace.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("running 1 test") {
        return not_run_here("exec", String::from_utf8_lossy(&output.stderr));
    }
    assert!(output.status.success(), "{text}");
    let seen = fs::read_to_string(&trace).unwrap();
    let _ = fs::remove_file(&trace);
    assert!(seen.contains("CLOCK_THREAD_CPUTIME_ID"), "{seen}");
    assert_eq!(seen.lines().count(), 1, "{seen}");
}
