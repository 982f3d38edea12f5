//! `cargo xtask runner`, as cargo starts it: what passes through it, and what it ends.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{self, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// For what happens at once on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs natively.
const NATIVE: &str = r#"{"qemu": []}"#;

/// Writes its process id and that of a child. Both sleep for long.
const SLEEPERS: &str = "sleep 1000 & echo $! >child; echo $$ >leader; wait";

/// A runner in a folder whose name contains a space.
struct Runner {
    folder: PathBuf,
    plan: &'static str,
}

impl Runner {
    fn new(name: &str, plan: &'static str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name} {}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder, plan }
    }

    /// A command with the environment of the runner.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("VDSO_TIME_RUNNER_PLAN", self.plan).current_dir(&self.folder);
        command
    }

    fn runner(&self, words: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_xtask"));
        command.arg("runner").args(words);
        command
    }

    fn run(&self, words: &[&str], limit: &str) -> Output {
        self.runner(words).env("VDSO_TIME_GUEST_TIMEOUT", limit).output().unwrap()
    }

    /// The process id that a script wrote to this file.
    fn process(&self, file: &str) -> String {
        let read = || fs::read_to_string(self.folder.join(file)).ok().filter(|text| text.ends_with('\n'));
        until("a process id", read).trim().to_owned()
    }

    /// The processes of `SLEEPERS`.
    fn sleepers(&self) -> [String; 2] {
        ["leader", "child"].map(|file| self.process(file))
    }
}

impl Drop for Runner {
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

/// Fails unless the process ends. A zombie has ended.
fn assert_ends(process: &String) {
    let has_ended = || match fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')).then_some(()),
        Err(_) => Some(()),
    };
    until(&format!("the end of process {process}"), has_ended);
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn output_and_status_pass_through() {
    let runner = Runner::new("through", NATIVE);
    let output = runner.run(&["/bin/sh", "-c", "echo out; echo err >&2; exit 7"], "60");
    assert_eq!(
        (output.status.code(), text(&output.stdout), text(&output.stderr)),
        (Some(7), "out\n", "err\n")
    );
    // A shell reports 128 and the signal.
    assert_eq!(runner.run(&["/bin/sh", "-c", "kill -SEGV $$"], "60").status.code(), Some(128 + 11));
}

#[test]
fn the_emulator_of_the_plan_runs_the_program() {
    let runner = Runner::new("emulator", r#"{"qemu": ["/bin/echo", "an emulator"]}"#);
    assert_eq!(text(&runner.run(&["/bin/p", "--x"], "60").stdout), "an emulator /bin/p --x\n");
}

#[test]
fn a_program_that_exceeds_the_limit_ends_with_its_children() {
    let runner = Runner::new("limit", NATIVE);
    let output = runner.run(&["/bin/sh", "-c", SLEEPERS], "1");
    assert_eq!(output.status.code(), Some(125));
    let expected =
        "xtask runner: /bin/sh: still running after 1 s; VDSO_TIME_GUEST_TIMEOUT=SECONDS allows more\n";
    assert_eq!(text(&output.stderr), expected);
    runner.sleepers().iter().for_each(assert_ends);
}

#[test]
fn a_program_ends_with_its_children_when_cargo_is_killed_or_the_runner_terminated() {
    // The shell stands for cargo. It does not replace itself, because a command follows.
    let cargo = ["-c", "\"$@\"; :", "sh", env!("CARGO_BIN_EXE_xtask"), "runner", "/bin/sh", "-c", SLEEPERS];
    for (name, signal) in [("cargo", "-KILL"), ("runner", "-TERM")] {
        let runner = Runner::new(name, NATIVE);
        let mut started = match name {
            "cargo" => runner.command("/bin/sh").args(cargo).spawn().unwrap(),
            _ => runner.runner(&["/bin/sh", "-c", SLEEPERS]).spawn().unwrap(),
        };
        let sleepers = runner.sleepers();
        assert!(Command::new("kill").args([signal, &started.id().to_string()]).status().unwrap().success());
        sleepers.iter().for_each(assert_ends);
        let code = started.wait().unwrap().code();
        assert_eq!(code, (name == "runner").then_some(128 + 15));
    }
}

#[test]
fn a_program_ends_when_the_runner_is_killed() {
    let runner = Runner::new("killed", NATIVE);
    let mut started = runner.runner(&["/bin/sh", "-c", "echo $$ >leader; exec sleep 1000"]).spawn().unwrap();
    let leader = runner.process("leader");
    started.kill().unwrap();
    started.wait().unwrap();
    assert_ends(&leader);
}

#[test]
fn qemu_ends_with_the_runner_and_at_the_limit() {
    // The shell ignores the arguments of a kernel's QEMU.
    let plan = r#"{"qemu": ["/bin/sh", "-c", "echo $$ >qemu; exec sleep 1000"], "init": "/bin/true"}"#;
    let runner = Runner::new("boot", plan);
    let mut started = runner.runner(&["/bin/true"]).spawn().unwrap();
    let qemu = runner.process("qemu");
    started.kill().unwrap();
    started.wait().unwrap();
    assert_ends(&qemu);

    fs::remove_file(runner.folder.join("qemu")).unwrap();
    let output = runner.run(&["/bin/true"], "1");
    assert_eq!(output.status.code(), Some(125));
    let expected = "/bin/true: still running after 1 s; VDSO_TIME_GUEST_TIMEOUT=SECONDS allows more; \
                    the kernel did not start init and printed nothing\n";
    assert_eq!(text(&output.stderr), format!("xtask runner: {expected}"));
    assert_ends(&runner.process("qemu"));
}

#[test]
fn errors_say_what_to_do() {
    let runner = Runner::new("errors", NATIVE);
    let output = runner.runner(&["/bin/true"]).env_remove("VDSO_TIME_RUNNER_PLAN").output().unwrap();
    let expected = "xtask runner: VDSO_TIME_RUNNER_PLAN is not set; `cargo xtask on MACHINE` sets it";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(125));

    for limit in ["x", "-1", "18446744073709551615"] {
        let output = runner.run(&["/bin/true"], limit);
        let expected = format!("xtask runner: VDSO_TIME_GUEST_TIMEOUT={limit} is not a number");
        assert!(text(&output.stderr).starts_with(&expected), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(125));
    }

    for (arguments, expected) in [
        (["on", "vax", "test"], "no architecture `vax`; there are x86_64, i686, aarch64"),
        (["fuzz", "--seconds", "0"], "invalid value '0' for '--seconds <SECONDS>'"),
    ] {
        let output = runner.command(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let lines: Vec<&str> = text(&output.stderr).lines().collect();
        let [error, "", hint] = lines[..] else { panic!("{lines:?}") };
        assert!(error.contains(expected) && hint.contains("--help"), "{lines:?}");
    }
}

#[test]
fn cargo_gets_a_target_folder_of_its_own_in_that_of_the_environment() {
    let runner = Runner::new("target", NATIVE);
    let machine = format!("{}@native", env::consts::ARCH);
    // printenv(1) stands for cargo, and prints one variable.
    let mut on = runner.command(env!("CARGO_BIN_EXE_xtask"));
    on.args(["on", &machine, "CARGO_TARGET_DIR"]).env("CARGO", "printenv");
    let output = on.env("CARGO_TARGET_DIR", "a folder").output().unwrap();
    let expected = runner.folder.join("a folder/on");
    assert_eq!(text(&output.stdout).trim_end(), expected.to_str().unwrap(), "{}", text(&output.stderr));
}
