//! Fresh processes of the bench itself.

use std::env;
use std::process::Command;

use super::arguments::CHILD;

/// Runs this very program as a child, and gives what it printed.
///
/// # Errors
/// The child could not be started, or failed: what it said.
pub fn child(asked: &[&str]) -> Result<String, String> {
    let program = env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let output = Command::new(program)
        .arg(CHILD)
        .args(asked)
        .output()
        .map_err(|error| format!("no child process: {error}"))?;
    if !output.status.success() {
        return Err(format!("{asked:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}
