//! `cargo xtask runner`, as cargo starts it: what passes through it, and what it ends.

use std::fs;
use std::path::PathBuf;
use std::process::{self, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// For what happens at once on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs natively.
const NATIVE: &str = r#"{"qemu": []}"#;

/// Writes its process id and sleeps for long.
const SLEEPER: &str = "echo $$ >sleeper; exec sleep 1000";

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

    /// The process id of `SLEEPER`.
    fn sleeper(&self) -> String {
        let file = self.folder.join("sleeper");
        let read = || fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'));
        let process = until("a process id", read).trim().to_owned();
        fs::remove_file(&file).unwrap();
        process
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
fn a_program_and_qemu_end_at_the_limit_and_with_the_runner() {
    // The shell ignores the arguments of a kernel's QEMU.
    let boot = r#"{"qemu": ["/bin/sh", "-c", "echo $$ >sleeper; exec sleep 1000"], "init": "/bin/true"}"#;
    let console = "; init did not start. The kernel's last lines:\n  ";
    for (name, plan, words, end) in
        [("program", NATIVE, &["/bin/sh", "-c", SLEEPER][..], ""), ("qemu", boot, &["/bin/sh"], console)]
    {
        let runner = Runner::new(name, plan);
        let output = runner.run(words, "1");
        assert_eq!(output.status.code(), Some(125));
        let limit = "/bin/sh: still running after 1 s; VDSO_TIME_GUEST_TIMEOUT=SECONDS allows more";
        assert_eq!(text(&output.stderr), format!("xtask runner: {limit}{end}\n"));
        assert_ends(&runner.sleeper());

        // The shell stands for cargo. It does not replace itself, because a command follows.
        let mut cargo = runner.command("/bin/sh");
        cargo.args(["-c", "\"$@\"; :", "sh", env!("CARGO_BIN_EXE_xtask"), "runner"]).args(words);
        for mut command in [runner.runner(words), cargo] {
            let mut started = command.spawn().unwrap();
            let sleeper = runner.sleeper();
            started.kill().unwrap();
            started.wait().unwrap();
            assert_ends(&sleeper);
        }
    }
}
