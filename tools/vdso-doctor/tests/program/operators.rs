//! The parts that operators run: the metrics, and the files in `contrib`.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::{filter, has_tool, not_run_here};

use super::{PROGRAM, ended, run};

/// Makes an empty directory.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn prometheus_reads_the_metrics() {
    let Some((status, text, error)) = run("--metrics --require-user-space=THREAD_CPUTIME_ID")
    else {
        return;
    };
    // The vDSO of no kernel answers CPU-time clocks, so they enter the kernel: status 1. In an
    // emulator it is unknown where they are answered: status 2.
    assert!(status == Some(1) || status == Some(2), "{text}{error}");
    assert!(
        text.ends_with("# EOF\n") && error.is_empty(),
        "{text}{error}"
    );
    if !has_tool(
        "/usr/bin/python3",
        &["-c", "import prometheus_client.openmetrics"],
    ) {
        return;
    }
    let directory = directory("metrics");
    let file = directory.join("vdso.prom");
    fs::write(&file, &text).unwrap();
    let mut python = Command::new("/usr/bin/python3");
    python
        .args(["-c", include_str!("metrics.py")])
        .stdin(fs::File::open(file).unwrap());
    let (parsed, out, error) = ended(&mut python).unwrap();
    assert_eq!((parsed, &*error), (Some(0), ""), "{text}");
    let samples: Vec<_> = out.lines().collect();
    let (new, old) = samples.split_at(samples.len() / 2);
    assert_eq!(new, old);
    let expected = format!("gauge vdso_doctor_status [] {}.0", status.unwrap());
    assert!(new.contains(&&*expected), "{out}");
    let cpu_time = "('clock', 'CLOCK_THREAD_CPUTIME_ID'), ('function', 'clock_gettime')";
    let location = format!("gauge vdso_doctor_in_user_space [{cpu_time}] 0.0");
    assert!(status != Some(1) || new.contains(&&*location), "{out}");
    let is_timed = !run("").unwrap().1.contains("The reads are not timed");
    assert_eq!(
        out.contains("gauge vdso_doctor_read_seconds"),
        is_timed,
        "{out}"
    );
}

/// Denies the proof, so that it is unknown where most reads are answered.
#[test]
#[allow(unsafe_code, reason = "a seccomp filter is installed in the child")]
fn an_unknown_place_is_no_sample() {
    if !filter::works() {
        return;
    }
    let deny = [(libc::SYS_prctl as u32, filter::error(libc::EPERM))];
    let mut program = filter::program(&deny, filter::ALLOW, filter::ALLOW);
    let mut doctor = Command::new(PROGRAM);
    doctor.args([
        "--metrics",
        "--require-user-space=REALTIME,THREAD_CPUTIME_ID",
    ]);
    // SAFETY: between fork and exec, it makes two system calls and allocates nothing.
    unsafe { doctor.pre_exec(move || filter::install(&mut program)) };
    let Some((status, text, error)) = ended(&mut doctor) else {
        return;
    };
    let locations = text
        .lines()
        .filter(|line| line.starts_with("vdso_doctor_in_user_space{"));
    let locations: Vec<_> = locations.collect();
    assert!(
        locations.iter().all(|line| line.ends_with(" 0")),
        "{text}{error}"
    );
    // Without a vDSO the kernel answers each read for certain, so the status is 1. With one, only
    // the location of a `getcpu` that the vDSO lacks is certain, but no clock's location is.
    let has_clock = locations.iter().any(|line| line.contains("clock="));
    assert!(status == Some(1) || !has_clock, "{text}{error}");
}

/// Compares the commands in the files for systemd and Kubernetes with the command of a check.
#[test]
fn the_unit_and_the_pod_run_a_check() {
    let unit = include_str!("../../contrib/vdso-doctor.service");
    let of_unit = rest_of_line(unit, "ExecStart=");
    // A flow sequence of YAML is JSON.
    let of_pod: Vec<String> = serde_json::from_str(rest_of_line(POD, "command: ")).unwrap();
    assert_eq!(of_unit.split(' ').collect::<Vec<_>>(), of_pod);
    let [program, arguments @ ..] = &*of_pod else {
        panic!("{of_pod:?}")
    };
    assert_eq!(program, "/usr/bin/vdso-doctor");
    let Some((status, out, error)) = run(&arguments.join(" ")) else {
        return;
    };
    assert!(
        matches!(status, Some(0..=2)) && out.is_empty(),
        "{status:?} {out} {error}"
    );
    if !has_tool("systemd-analyze", &["--version"]) {
        return;
    }
    let directory = directory("unit");
    let installed = directory.join("vdso-doctor.service");
    fs::write(&installed, unit.replace("/usr/bin/vdso-doctor", PROGRAM)).unwrap();
    let mut verify = Command::new("systemd-analyze");
    let Some((status, _, error)) = ended(verify.args(["verify", "--man=no"]).arg(installed)) else {
        return;
    };
    if error.contains("D-Bus") {
        return not_run_here(error);
    }
    assert_eq!((status, &*error), (Some(0), ""));
}

const POD: &str = include_str!("../../contrib/kubernetes.yaml");

/// Returns the rest of the first line that begins with `start`.
fn rest_of_line<'a>(text: &'a str, start: &str) -> &'a str {
    let mut lines = text.lines();
    let rest = lines.find_map(|line| line.trim().strip_prefix(start));
    rest.expect(start)
}

#[test]
fn the_pod_has_this_version_and_the_rights_of_a_restricted_one() {
    let image = concat!(" image: vdso-doctor:", env!("CARGO_PKG_VERSION"), "\n");
    assert!(POD.contains(image), "{POD}");
    // The Pod Security Standard "restricted" demands all of these of every container. The first two
    // may be set once for the pod, and then hold for all containers.
    let (of_all, containers) = POD.split_once("initContainers:").unwrap();
    for setting in ["runAsNonRoot: true", "type: RuntimeDefault"] {
        assert!(of_all.contains(setting), "{POD}");
    }
    for container in containers.split("- name: ").skip(1) {
        let has_anchor = container.contains("securityContext: &restricted\n");
        let has_alias = container.ends_with("securityContext: *restricted\n");
        assert!(has_anchor || has_alias, "{container}");
    }
    assert!(POD.contains(
        "allowPrivilegeEscalation: false\n        capabilities:\n          drop: [ALL]\n"
    ));
}

/// glibc's dynamic loader reads the counter before `main`, so under an inherited `PR_SET_TSC` only
/// a static program can report the cause.
#[test]
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "prctl(2) is called in the child")]
fn a_static_doctor_under_an_inherited_pr_set_tsc_says_why_it_cannot_read() {
    use std::io;

    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("static");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--package",
        "vdso-doctor",
        "--target",
        "x86_64-unknown-linux-gnu",
    ]);
    cargo
        .arg("--target-dir")
        .arg(&target)
        .env("RUSTFLAGS", "-Ctarget-feature=+crt-static");
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    let Some((built, _, error)) = ended(&mut cargo) else {
        return;
    };
    if built != Some(0) {
        return not_run_here(error);
    }
    let doctor = target.join("x86_64-unknown-linux-gnu/debug/vdso-doctor");
    for argument in ["--quiet", "--verbose", "--metrics"] {
        let mut command = Command::new(&doctor);
        command.arg(argument);
        let deny = || {
            // SAFETY: prctl(2) takes a mode. The program that is executed next inherits it.
            match unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: between fork and exec, `deny` makes one system call.
        unsafe { command.pre_exec(deny) };
        let Some((status, out, error)) = ended(&mut command) else {
            return;
        };
        assert_eq!((status, &*out), (Some(2), ""), "{argument}: {error}");
        assert!(
            error.starts_with("vdso-doctor: ") && error.contains("PR_SET_TSC"),
            "{argument}: {error}"
        );
    }
}
