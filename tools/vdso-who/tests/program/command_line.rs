//! Tests of the command line, the output and the exit status.

use std::ffi::c_long;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{geteuid, gettid};

use super::command::assert_says_that_output_is_lost;
use super::common::{not_run_here, target_tmpdir};
use super::compiled::compiled;
use super::filter::deny;
use super::{PROGRAM, can_be_started, fits, report, run, started, watched, who};

#[test]
fn wrong_arguments_are_status_64_and_one_sentence() {
    let wrong = [
        "",
        "--",
        "--pid=1 -- true",
        "--pid=1 --all",
        "--all --exact",
        "--exact --pid=1",
        "--pid=1 --folded --json",
        "--pid=1 --duration=0",
        "--pid=1 --frequency=0",
        "--generate",
        "--generate=man --all",
        "--interval=1 --folded --all",
        "--all --no-children",
        "--compare=before.json --exact -- true",
        "--compare=before.json --all -o who.svg",
        "--pid",
    ];
    let mistyped = [
        ("--jsn --pid=1", "'--json'"),
        ("--durration=1 --all", "'--duration'"),
        ("--al", "'--all'"),
        ("top --folded", "'top' cannot be used with"),
        ("-i1 --all --folded", "'--interval"),
    ];
    for (arguments, suggestion) in wrong
        .map(|arguments| (arguments, ""))
        .into_iter()
        .chain(mistyped)
    {
        let words: Vec<_> = arguments.split_whitespace().collect();
        let Some((status, out, error)) = run(&words) else {
            return;
        };
        assert_eq!((status, &*out), (Some(64), ""), "{arguments}: {error}");
        assert!(
            error.starts_with("vdso-who: ") && error.contains("`vdso-who --help`"),
            "{arguments}: {error}"
        );
        assert!(
            error.lines().count() <= 3 && error.contains(suggestion),
            "{arguments}: {error}"
        );
    }
}

#[test]
fn help_fits_80_columns() {
    for (arguments, contains) in [
        (&["--help"][..], "Examples:"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["--generate", "bash"], "--frequency"),
        (&["--generate=man"], ".SH OPTIONS"),
    ] {
        let Some((status, out, error)) = run(arguments) else {
            return;
        };
        assert_eq!((status, &*error), (Some(0), ""), "{arguments:?}");
        assert!(
            out.contains(contains) && (arguments[0] != "--help" || fits(&out)),
            "{arguments:?}: {out}"
        );
    }
}

/// Fails unless a program ended with status 2 and an error that begins with this text. Does nothing
/// if the program could not be started.
fn assert_fails(output: io::Result<Output>, expected: &str) {
    let Some((status, out, error)) = started(output) else {
        return;
    };
    assert_eq!((status, &*out), (Some(2), ""), "{error}");
    assert!(
        error
            .replace('\n', " ")
            .starts_with(&format!("vdso-who: {expected}")),
        "{error}"
    );
}

#[test]
fn what_is_missing_is_named() {
    let number = std::process::id();
    let (to, from) = channel();
    thread::spawn(move || {
        to.send(gettid()).unwrap();
        thread::park();
    });
    let thread = from.recv().unwrap();
    for (arguments, expected) in [
        (
            &["--pid=4194305"][..],
            "cannot read process 4194305: there is no such process, it is a kernel thread, or /proc hides it (hidepid): check the id with `ps -p 4194305` as root",
        ),
        (
            &[&format!("--pid={thread}")],
            &*format!("{thread} is a thread of process {number}: use --pid {number}"),
        ),
        (
            &["--", "/nonexistent/program"],
            "cannot run /nonexistent/program: ",
        ),
        // A terminal would obey the control character, so it is escaped.
        (
            &["--", "/nonexistent/\x1b[31m"],
            "cannot run /nonexistent/\\u{1b}[31m: ",
        ),
        (
            &["record", "-F99", "-g", "/nonexistent/program", "-p"],
            "cannot run /nonexistent/program: ",
        ),
        (
            &[&number.to_string()],
            &format!(
                "cannot run {number}: No such file or directory (os error 2): to watch a process, use `vdso-who --pid {number}`"
            ),
        ),
        // A directory that is not a cgroup has no CPU time to compare the samples with.
        (&["--cgroup=/proc"], "/proc is not a cgroup v2 directory: "),
        (
            &["--compare=/nonexistent", "--", "true"],
            "cannot compare with /nonexistent: No such file",
        ),
        (
            &["--compare=/proc/version", "--", "true"],
            "cannot compare with /proc/version: it is not one report of `vdso-who --json`: ",
        ),
    ] {
        assert_fails(who(arguments).output(), expected);
    }
    // Before Linux 5.13, and without a vDSO, --exact fails before it runs the command.
    let exact = who(&["--exact", "/nonexistent/program"]).output();
    if let Ok(output) = &exact {
        let error = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        if error.contains("needs Linux 5.13") || error.contains("the process has no vDSO") {
            return not_run_here(error.trim());
        }
    }
    assert_fails(exact, "cannot run /nonexistent/program: ");
}

/// Runs vdso-who without /proc, so that there is no CPU time to compare the samples with. Then runs
/// it with the /proc of another PID namespace, in which its process id belongs to another process.
#[test]
fn a_proc_that_is_missing_or_of_another_pid_namespace_is_refused() {
    const UNMOUNT: &str = "while umount -l /proc 2>/dev/null; do :; done; exec \"$@\"";
    const MISSING: &str = "cannot read the CPU time: is /proc mounted?";
    if !can_be_started() {
        return;
    }
    for (arguments, expected) in [
        (
            &[
                "--mount",
                "sh",
                "-c",
                UNMOUNT,
                "",
                PROGRAM,
                "--all",
                "--duration=1",
            ][..],
            MISSING,
        ),
        (
            &["--mount", "sh", "-c", UNMOUNT, "", PROGRAM, "--", "true"],
            MISSING,
        ),
        (
            &["--pid", "--fork", PROGRAM, "--", "true"],
            "/proc belongs to another PID namespace: ",
        ),
    ] {
        let output = Command::new("unshare").args(arguments).output();
        let error = output.as_ref().map_or(String::new(), |output| {
            String::from_utf8_lossy(&output.stderr).into()
        });
        if ["unshare: ", "umount: ", "perf_event_open"]
            .iter()
            .any(|missing| error.contains(missing))
        {
            return not_run_here(error);
        }
        assert_fails(output, expected);
    }
}

#[test]
fn debuginfod_needs_its_program_and_a_server() {
    for (servers, expected) in [
        ("", "--debuginfod asks the servers in DEBUGINFOD_URLS"),
        ("x", "cannot run debuginfod-find: "),
    ] {
        let mut command = who(&["--debuginfod", "--", "/bin/echo", "ran"]);
        assert_fails(
            command
                .env("PATH", "/nonexistent")
                .env("DEBUGINFOD_URLS", servers)
                .output(),
            expected,
        );
    }
}

/// Lets perf_event_open(2) fail. For EPERM, the error must name both possible causes: the seccomp
/// filter of a container and kernel.perf_event_paranoid. ENODEV is the error of gVisor.
#[test]
fn a_denied_perf_event_open_has_its_causes_and_a_missing_one_has_no_options() {
    const CALL: c_long = libc::SYS_perf_event_open;
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let paranoid = format!("kernel.perf_event_paranoid is {}:", paranoid.trim());
    for (number, causes) in [
        (libc::EPERM, ["a seccomp filter", &paranoid]),
        (
            libc::ENODEV,
            [
                "this kernel has no perf_event_open(2)",
                "run vdso-who outside",
            ],
        ),
    ] {
        let denied = move || deny(CALL, number).then(|| who(&["--", "true"]).output());
        let Some(output) = thread::spawn(denied).join().unwrap() else {
            return;
        };
        let Some((status, out, error)) = started(output) else {
            return;
        };
        if !error.contains("perf_event_open") {
            return not_run_here(error);
        }
        assert_eq!((status, &*out), (Some(2), ""), "{error}");
        let words = error.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            causes.iter().all(|cause| words.contains(cause)) && !words.contains("--exact"),
            "{error}"
        );
    }
}

#[test]
fn a_denied_ptrace_is_named() {
    let denied = || {
        let command = || who(&["--exact", "--", "true"]).output();
        deny(libc::SYS_ptrace, libc::EPERM).then(command)
    };
    let Some(output) = thread::spawn(denied).join().unwrap() else {
        return;
    };
    let Some((status, out, error)) = started(output) else {
        return;
    };
    if ["perf_event_open", "breakpoint", "no vDSO", "gVisor"]
        .iter()
        .any(|lack| error.contains(lack))
    {
        return not_run_here(error);
    }
    assert_eq!((status, &*out), (Some(2), ""), "{error}");
    assert!(
        error.contains("ptrace(2) is denied") && error.contains("omit --exact"),
        "{error}"
    );
}

/// At the limit on open files, vdso-who could read neither mappings nor CPU times.
#[test]
fn too_low_a_limit_of_open_files_is_an_error_that_names_it() {
    if !can_be_started() {
        return;
    }
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 12; exec \"$0\" -- true", PROGRAM]);
    let Some((status, out, error)) = watched(limited.output()) else {
        return;
    };
    assert_eq!((status, &*out), (Some(2), ""), "{error}");
    assert!(
        error.contains("limit on open files, which is 12"),
        "{error}"
    );
    let advises_root = error.contains("run vdso-who as root");
    assert_eq!(advises_root, !geteuid().is_root(), "{error}");
}

/// Returns a shell command that waits for this many seconds. It waits longer in an emulator,
/// because a measurement begins later there.
fn pause(seconds: u32) -> String {
    let is_emulated = std::env::var_os("VDSO_TIME_EMULATED").is_some();
    let factor = if is_emulated { 5 } else { 1 };
    format!("sleep {}", seconds * factor)
}

/// Closes the other end of standard output before the first table is written. The command is still
/// running when vdso-who writes the table.
#[test]
fn tables_that_nobody_reads_end_the_measurement_but_not_the_command() {
    let (output, reader) = UnixStream::pair().unwrap();
    drop(reader);
    let script = format!("{}; exit 4", pause(4));
    let mut command = who(&["--interval=1", "--", "sh", "-c", &script]);
    let output = command.stdout(OwnedFd::from(output)).output();
    let Some((status, _, error)) = watched(output) else {
        return;
    };
    assert!(
        status == Some(4) && error.contains("waiting for the command"),
        "{status:?} {error}"
    );
}

/// Also expects that the command does not run if the output file cannot be created or standard
/// output is closed, and that the report is written even if the command removes the file.
#[test]
fn output_that_cannot_be_written_is_status_2_and_an_error() {
    for arguments in [&["--help"][..], &["--generate=man"], &["--", "true"]] {
        assert_says_that_output_is_lost("vdso-who", || who(arguments), watched);
    }
    let Some((status, out, error)) = run(&["-o", "/proc/report", "--", "echo", "ran"]) else {
        return;
    };
    assert_eq!((status, &*out), (Some(2), ""), "{error}");
    assert!(
        error.starts_with("vdso-who: cannot write /proc/report: "),
        "{error}"
    );
    let path = target_tmpdir().join("report");
    let path = path.to_str().unwrap();
    fs::write(path, "the report before").unwrap();
    // No process can have this id.
    let Some((status, ..)) = run(&["-o", path, "--pid=4194305"]) else {
        return;
    };
    assert_eq!(
        (status, &*fs::read_to_string(path).unwrap()),
        (Some(2), "the report before")
    );
    let Some((status, _, error)) = run(&["-o", path, "--", "rm", path]) else {
        return;
    };
    assert_eq!(status, Some(0), "{error}");
    assert!(fs::read_to_string(path).unwrap().starts_with("process "));
    let mut closed = Command::new("sh");
    closed.args([
        "-c",
        "exec \"$0\" \"$@\" >&-",
        PROGRAM,
        "--",
        "sh",
        "-c",
        "echo ran >&2",
    ]);
    let Some((_, _, error)) = started(closed.output()) else {
        return;
    };
    assert!(!error.contains("ran"), "{error}");
}

/// Measures the same command twice, and compares the two reports.
#[test]
fn a_report_of_json_can_be_compared_with_a_later_one() {
    let path = target_tmpdir().join("before.json");
    let path = path.to_str().unwrap();
    let Some((status, _, error)) = run(&["--json", "-o", path, "--", "true"]) else {
        return;
    };
    assert_eq!((status, &*error), (Some(0), ""));
    let compare = format!("--compare={path}");
    let Some((_, report)) = report(who(&["--json", &compare, "--", "true"]).output()) else {
        return;
    };
    assert!(report["comparison"]["processes"].is_array(), "{report:#}");
    let Some((status, out, error)) = run(&[&compare, "--", "true"]) else {
        return;
    };
    assert_eq!((status, &*error), (Some(0), ""), "{out}");
    assert!(out.contains("In the earlier report") && fits(&out), "{out}");
    // Processes are merged by name, so only the rows of threads or units cannot be compared.
    for (grouping, expected) in [("process", 0), ("thread", 2), ("unit", 2)] {
        let group_by = format!("--group-by={grouping}");
        let Some((status, _, error)) = run(&[&compare, &group_by, "--", "true"]) else {
            return;
        };
        assert_eq!(status, Some(expected), "{grouping}: {error}");
        let is_named = error.contains("the same --group-by as then");
        assert_eq!(is_named, expected == 2, "{grouping}: {error}");
    }
}

/// Runs commands, some of them under a guard, that exit or send signals to themselves. A guarded
/// command gets every signal except the ones that breakpoints in the vDSO raise.
#[test]
fn the_status_is_the_commands_also_under_a_guard() {
    for (option, script, expected, said) in [
        ("--frequency=499", "exit 7", 7, ""),
        ("--frequency=499", "kill -9 $$", 137, ""),
        ("--frequency=499", "exec true", 0, ""),
        // After the measurement, vdso-who prints that it waits for the command. Otherwise it would
        // seem to hang.
        (
            "--duration=1",
            &format!("{}; exit 4", pause(3)),
            4,
            "waiting for the command",
        ),
        ("--exact", "kill -TRAP $$", 133, ""),
        (
            "--exact",
            "trap 'exit 5' USR1; kill -USR1 $$; exit 4",
            5,
            "",
        ),
        // The command stops itself, and its child lets it continue.
        (
            "--exact",
            "(sleep 0.2; kill -CONT $$) & kill -STOP $$; exit 6",
            6,
            "",
        ),
        ("--exact", "exec sh -c 'exec sh -c \"exit 7\"'", 7, ""),
    ] {
        let Some((status, out, error)) = run(&[option, "--", "sh", "-c", script]) else {
            return;
        };
        assert_eq!(status, Some(expected), "{script}: {out}{error}");
        assert!(
            error.contains(said) && error.is_empty() == said.is_empty(),
            "{script}: {error}"
        );
        assert!(out.starts_with("process ") && fits(&out), "{out}");
    }
}

/// The command prints its limits on memory and on open files, which vdso-who changes only for
/// itself, and the signals that it blocks, ignores and catches.
#[test]
fn a_command_has_the_callers_limits_and_signals() {
    const SCRIPT: &str = "ulimit -v; ulimit -n; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
    let Ok(alone) = Command::new("sh").args(["-c", SCRIPT]).output() else {
        return;
    };
    let alone = String::from_utf8(alone.stdout).unwrap();
    for option in ["--frequency=499", "--exact"] {
        let Some((_, out, error)) = run(&[option, "--", "sh", "-c", SCRIPT]) else {
            return;
        };
        assert!(out.starts_with(&alone), "{alone}\n{out}{error}");
    }
}

/// Returns the output of a command. Fails if it does not end within 100 s.
fn output_of_short(mut command: Command) -> io::Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let start = Instant::now();
    while child.try_wait()?.is_none() {
        if start.elapsed() > Duration::from_secs(100) {
            child.kill()?;
            panic!("{command:?} does not end");
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output()
}

/// Ignores SIGCHLD, as bspwm, perl and bubblewrap do before they start a program. The kernel then
/// discards the status of a child that ends.
#[test]
fn a_command_ends_with_its_status_even_if_the_caller_ignores_its_end() {
    #[allow(unsafe_code, reason = "an action of a signal is set in a child")]
    fn ignoring(mut command: Command) -> Command {
        let ignore = || {
            // SAFETY: an ignored signal runs no code.
            unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) }?;
            Ok(())
        };
        // SAFETY: between fork and exec, this makes one system call.
        unsafe { command.pre_exec(ignore) };
        command
    }
    const SCRIPT: &str = "grep ^SigIgn /proc/self/status; exit 7";
    if !can_be_started() {
        return;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT]);
    let Ok(alone) = ignoring(shell).output() else {
        return;
    };
    let alone = String::from_utf8(alone.stdout).unwrap();
    for option in ["--frequency=499", "--exact"] {
        let command = who(&[option, "--", "sh", "-c", SCRIPT]);
        let Some((status, out, error)) = watched(output_of_short(ignoring(command))) else {
            return;
        };
        assert_eq!(status, Some(7), "{option}: {out}{error}");
        assert!(out.starts_with(&alone), "{option}: {alone}\n{out}{error}");
    }
}

/// Runs a program that sends itself the SIGTRAP that the kernel sends if the CPU does not name the
/// breakpoint. Without a guard, the signal ends the program.
#[test]
fn a_trap_that_no_register_names_does_not_end_a_guarded_command() {
    let Some(program) = compiled(("traps", "gcc", "-O1", "traps.c", "")) else {
        return;
    };
    let alone = Command::new(&program).status().unwrap();
    assert_eq!(alone.signal(), Some(Signal::SIGTRAP as i32), "{alone}");
    let output = who(&["--exact", "--json", "--"]).arg(program).output();
    let Some((_, report)) = report(output) else {
        return;
    };
    assert_eq!(report["swallowed"], 8000);
}
