//! The promise: generic code costs nothing. For `Monotonic` it is the machine code of the code that
//! names no clock, and a clock of the user's own drives it.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use test_support::not_run_here;

/// Calls cargo for the example, in a target folder of its own. `None`, after a line that says so,
/// if there is no cargo.
fn cargo(command: &str, compiler: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([command, "--release", "--example", "simulated_clock", "--target-dir", TARGET, "--"])
        .args(compiler)
        // Machine code is compared, which instrumentation would change.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            not_run_here("compiler", format!("cargo: {error}"));
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

const TARGET: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/simulated-clock");

/// The instructions of each function of a listing, without the names of its constants and jumps.
fn bodies(assembly: &str) -> Vec<(&str, Vec<&str>)> {
    let mut bodies: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in assembly.lines() {
        match (line.strip_suffix(':'), line.trim()) {
            (Some(label), _) if !label.starts_with('.') => bodies.push((label, Vec::new())),
            // arm keeps the addresses that a function loads after its instructions.
            (_, line) if line.starts_with(['.', '#', '@', '/']) && !line.starts_with(".long") => {}
            (_, line) => {
                if let Some((_, body)) = bodies.last_mut() {
                    body.push(line.split(".L").next().unwrap_or(line));
                }
            }
        }
    }
    bodies
}

#[test]
fn generic_code_for_monotonic_is_the_same_machine_code() {
    let Some(_) = cargo("rustc", &["--emit=asm", "-Ccodegen-units=1", "-Cdebuginfo=0"]) else { return };
    // cargo has a folder for a target that it was given.
    let target = env::var_os("CARGO_BUILD_TARGET").unwrap_or_default();
    let listings = fs::read_dir(Path::new(TARGET).join(target).join("release/examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension() == Some("s".as_ref()));
    let newest = listings.max_by_key(|path| path.metadata().and_then(|data| data.modified()).unwrap());
    let assembly = fs::read_to_string(newest.unwrap()).unwrap();

    let bodies = bodies(&assembly);
    let of_elapsed = bodies.iter().filter(|(label, _)| label.contains("elapsed"));
    let (named, generic): (Vec<_>, Vec<_>) =
        of_elapsed.partition(|(label, _)| label.contains("elapsed_monotonic"));
    let [(_, named)] = named[..] else { panic!("{named:?}") };
    // Two instances: for the simulated clock, which makes no call, and for `Monotonic`.
    let reads_clock = |body: &[&str]| body.iter().any(|line| line.contains("CLOCK_GETTIME"));
    let [(_, generic)] = generic.into_iter().filter(|(_, body)| reads_clock(body)).collect::<Vec<_>>()[..]
    else {
        panic!("{bodies:?}")
    };
    assert!(reads_clock(named), "{named:?}");
    assert_eq!(generic, named);
}

#[test]
fn a_clock_of_the_users_own_drives_generic_code() {
    let Some(output) = cargo("run", &[]) else { return };
    assert!(
        output.starts_with("a simulated day, one request a minute, one allowed an hour: 24 allowed"),
        "{output}"
    );
}
