//! The place runner as cargo starts it: what passes through it, and what it ends.

use std::fs;
use std::path::PathBuf;
use std::process::{self, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

const RUNNER: &str = env!("CARGO_BIN_EXE_place-runner");

/// For what comes at once on a machine that is not busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with a space in its name, and in it the plan of a place.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(name: &str, plan: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name} {}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("plan"), plan).unwrap();
        Self { folder }
    }

    fn runner(&self) -> Command {
        let mut command = Command::new(RUNNER);
        command.env("VDSO_TIME_PLAN", self.folder.join("plan")).current_dir(&self.folder);
        command
    }

    /// Runs a script with a shell at the place.
    fn run(&self, script: &str, limit: &str) -> Output {
        let mut runner = self.runner();
        runner.args(["/bin/sh", "-c", script]).env("VDSO_TIME_GUEST_TIMEOUT", limit);
        runner.output().unwrap()
    }

    /// The process whose number a script wrote to this file.
    fn process(&self, file: &str) -> String {
        let read = || fs::read_to_string(self.folder.join(file)).ok().filter(|text| text.ends_with('\n'));
        until("a process number", read).trim().to_owned()
    }

    /// The processes of `SLEEPERS`.
    fn sleepers(&self) -> [String; 2] {
        ["this", "child"].map(|file| self.process(file))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not after {PATIENCE:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Fails unless the process ends. One that nobody has waited for has ended too.
fn assert_ends(what: &str, process: &str) {
    let has_ended = || match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')).then_some(()),
        Err(_) => Some(()),
    };
    until(&format!("the end of {what}, process {process}"), has_ended);
}

/// Notes its own number and that of a child, and has both sleep for long.
const SLEEPERS: &str = "sleep 1000 & echo $! >child; echo $$ >this; wait";

#[test]
fn output_and_status_pass_through() {
    let place = Place::new("through", "");
    let output = place.run("echo out; echo err >&2; exit 7", "60");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    // As a shell says it: 128 and the signal.
    assert_eq!(place.run("kill -SEGV $$", "60").status.code(), Some(128 + 11));
}

#[test]
fn the_emulator_of_the_plan_runs_the_program() {
    let place = Place::new("emulator", "qemu /bin/echo\nqemu an emulator\n");
    let output = place.runner().args(["/bin/p", "--x"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "an emulator /bin/p --x\n");
}

#[test]
fn each_of_several_programs_is_followed_by_a_line_with_its_status() {
    let place = Place::new("each", "");
    let output = place.runner().args(["--each", "/bin/echo", "a b", "--and", "/bin/false"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().map(|line| line.split(',').next().unwrap()).collect();
    let marks = ["place-runner: /bin/echo: status 0", "place-runner: /bin/false: status 1"];
    assert_eq!(lines, ["a b", "", marks[0], "", marks[1]]);
}

#[test]
fn a_program_that_takes_too_long_is_ended_with_its_children_and_named() {
    let place = Place::new("long", "");
    let output = place.run(SLEEPERS, "1");
    assert_eq!(output.status.code(), Some(125));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        text,
        "place-runner: /bin/sh: no end after 1 s; VDSO_TIME_GUEST_TIMEOUT=SECONDS allows more\n"
    );
    for process in place.sleepers() {
        assert_ends("a sleeper", &process);
    }
}

fn signal(signal: &str, process: &str) {
    assert!(Command::new("kill").args([signal, process]).status().unwrap().success());
}

#[test]
fn a_program_and_its_children_end_when_cargo_is_killed() {
    let place = Place::new("cargo", "");
    // This shell is in cargo's place. As a command follows, it stays.
    let mut cargo = Command::new("/bin/sh");
    cargo.args(["-c", "\"$@\"; :", "sh", RUNNER, "/bin/sh", "-c", SLEEPERS]);
    cargo.env("VDSO_TIME_PLAN", place.folder.join("plan")).current_dir(&place.folder);
    let mut cargo = cargo.spawn().unwrap();
    let sleepers = place.sleepers();
    cargo.kill().unwrap();
    cargo.wait().unwrap();
    for process in sleepers {
        assert_ends("a sleeper", &process);
    }
}

#[test]
fn a_program_and_its_children_end_when_the_runner_is_terminated() {
    let place = Place::new("terminated", "");
    let mut runner = place.runner().args(["/bin/sh", "-c", SLEEPERS]).spawn().unwrap();
    let sleepers = place.sleepers();
    // SIGINT has the same handler, but is ignored where the tests run in the background.
    signal("-TERM", &runner.id().to_string());
    for process in sleepers {
        assert_ends("a sleeper", &process);
    }
    assert_eq!(runner.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn a_program_ends_when_the_runner_is_killed() {
    let place = Place::new("killed", "");
    let mut runner = place.runner().args(["/bin/sh", "-c", SLEEPERS]).spawn().unwrap();
    let [this, child] = place.sleepers();
    runner.kill().unwrap();
    runner.wait().unwrap();
    assert_ends("the program", &this);
    // No process is left that could end the child.
    signal("-KILL", &child);
}

#[test]
fn a_qemu_that_boots_nothing_ends_with_the_runner() {
    // It ignores what a kernel's QEMU gets.
    let plan = "init /bin/true\nqemu /bin/sh\nqemu -c\nqemu echo $$ >this; exec sleep 1000\n";
    let place = Place::new("boot", plan);
    let mut runner = place.runner().arg("/bin/true").spawn().unwrap();
    let qemu = place.process("this");
    runner.kill().unwrap();
    runner.wait().unwrap();
    assert_ends("QEMU", &qemu);

    fs::remove_file(place.folder.join("this")).unwrap();
    let output = place.run("", "1");
    assert_eq!(output.status.code(), Some(125));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("/bin/sh: no end after 1 s; VDSO_TIME_GUEST_TIMEOUT=SECONDS"), "{text}");
    assert_ends("QEMU", &place.process("this"));
}

#[test]
fn a_plan_that_is_missing_or_not_understood_is_named() {
    let place = Place::new("plan", "kernel /k\n");
    let output = place.run("", "1");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("what is `kernel /k`?"), "{text}");
    let output = place.runner().arg("/bin/true").env_remove("VDSO_TIME_PLAN").output().unwrap();
    assert_eq!(output.stderr, b"place-runner: VDSO_TIME_PLAN names no file\n");
}
