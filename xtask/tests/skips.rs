//! `.ci/compare-skips`: a job passes only if its tests skipped what `.ci/skips` lists.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const LIST: &str = "\
# A comment.
[here other]
calls::late | it is before 2038 | armv7@6.12
calls::wide | no * symbols | armv7@6.12

[guest]
images::gcc | gcc is not installed | here

[armv7@7]
calls::late | it is before 2038 | armv7@6.12

[? s390x@* -s390x@7]
calls::* | an emulator | here

[? * -guest if no-root]
process::chroot | chroot: * | here

[here if no-ptp]
calls::ptp | /dev/ptp0: * | root
";

const HERE: &str = "\
running 3 tests
test calls::late ... not run here: calls::late: it is before 2038
not run here: calls::wide: no 32-bit symbols\r
test result: ok
";

/// Compares an output with the list. Returns whether it passes, and what is printed.
fn compare(list: &str, arguments: &[&str], output: &str) -> (bool, String) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skips");
    let directory = directory.join(format!("{:?}", std::thread::current().id()));
    fs::create_dir_all(&directory).unwrap();
    // The script reads the list beside it.
    let script = directory.join("compare-skips");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::copy(root.join(".ci/compare-skips"), &script).unwrap();
    fs::write(directory.join("skips"), list).unwrap();
    let mut child = Command::new("python3")
        .arg(script)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(output.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    (output.status.success(), printed)
}

#[test]
fn a_job_passes_with_the_skips_of_its_sections() {
    for (arguments, output) in [
        (&["here"][..], HERE),
        (&["other"], HERE),
        (
            &["x86_64@7"],
            "not run here: images::gcc: gcc is not installed",
        ),
        (&["--part", "here"], ""),
        // These lines may be there or not.
        (&["here", "no-root"], HERE),
        (&["armv7@qemu-10", "no-root"], ""),
        (&["s390x@qemu-10"], ""),
        (&["s390x@qemu-10"], "not run here: calls::any: an emulator"),
    ] {
        let (passes, printed) = compare(LIST, arguments, output);
        assert!(passes, "{arguments:?}: {printed}");
    }
    let emulator = "not run here: calls::any: an emulator";
    let with_gcc = format!("{emulator}\nnot run here: images::gcc: gcc is not installed");
    assert!(!compare(LIST, &["s390x@7"], &with_gcc).0);
}

#[test]
fn the_sections_of_a_condition_count_where_it_holds() {
    let passes = |arguments: &[&str], output: &str| compare(LIST, arguments, output).0;
    let chroot = format!("{HERE}not run here: process::chroot: chroot: EPERM\n");
    assert!(passes(&["here", "no-root"], &chroot));
    assert!(!passes(&["here"], &chroot));
    assert!(!passes(&["armv7@7", "no-root"], &chroot));
    // Without `?` they are exact.
    let ptp = format!("{HERE}not run here: calls::ptp: /dev/ptp0: ENOENT\n");
    assert!(passes(&["here", "no-ptp"], &ptp));
    assert!(!passes(&["here", "no-ptp"], HERE));
    assert!(!passes(&["here"], &ptp));
    assert!(passes(&["here"], HERE));
}

#[test]
fn one_line_more_or_one_line_fewer_is_printed_and_fails() {
    let more = format!("{HERE}not run here: calls::new: no such file: x\n");
    let (passes, printed) = compare(LIST, &["here"], &more);
    assert!(!passes);
    assert!(
        printed.ends_with("\n+ calls::new | no such file: x\n"),
        "{printed}"
    );

    let less = HERE.replace("32-bit symbols", "symbols");
    let (passes, printed) = compare(LIST, &["here"], &less);
    assert!(!passes);
    assert!(
        printed.contains("\n+ calls::wide | no symbols\n"),
        "{printed}"
    );
    assert!(
        printed.ends_with("\n- calls::wide | no * symbols\n"),
        "{printed}"
    );
}

/// Reads a file of this repository.
fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the jobs that the last column of a list names and that do not exist.
fn unknown_jobs(list: &str) -> Vec<&str> {
    let machines = read("xtask/src/matrix/machines.txt");
    let run = read(".ci/run");
    let mut jobs = vec!["here", "msrv", "other-user", "root"];
    for text in [&machines, &run] {
        for line in text.lines() {
            if !line.trim_start().starts_with('#') {
                jobs.extend(line.split([' ', ';', '"']));
            }
        }
    }
    let mut unknown = Vec::new();
    for line in list.lines() {
        if line.starts_with(['#', '[']) {
            continue;
        }
        if let Some((_, job)) = line.rsplit_once(" | ") {
            if !jobs.contains(&job) {
                unknown.push(job);
            }
        }
    }
    unknown
}

#[test]
fn each_job_that_the_list_names_exists() {
    assert_eq!(unknown_jobs(&read(".ci/skips")), [""; 0]);
    assert_eq!(unknown_jobs(LIST), [""; 0]);
    let renamed = LIST.replace("| armv7@6.12\ncalls", "| armv7@6.11\ncalls");
    assert_eq!(unknown_jobs(&renamed), ["armv7@6.11"]);
}

#[test]
fn a_test_that_is_skipped_in_the_job_that_should_run_it_fails() {
    let list = LIST.replace("[armv7@7]", "[armv7@6*]");
    let (passes, printed) = compare(&list, &["here"], HERE);
    assert!(!passes);
    let expected = "! calls::late | it is before 2038 | is also skipped in armv7@6.12\n";
    assert!(printed.ends_with(expected), "{printed}");
}
