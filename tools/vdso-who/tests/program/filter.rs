//! Seccomp filters (Documentation/userspace-api/seccomp_filter.rst).

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::error::Error;
use std::ffi::{c_int, c_long};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use super::common::not_run_here;

/// Makes a system call fail with an error in this thread. Returns whether that was possible; if
/// not, records the test as not run.
pub(crate) fn deny(call: c_long, number: c_int) -> bool {
    let denied = restrict(call, SeccompAction::Errno(number as u32));
    if let Err(error) = &denied {
        not_run_here(format!("seccomp: {error}"));
    }
    denied.is_ok()
}

fn restrict(call: c_long, action: SeccompAction) -> Result<(), Box<dyn Error>> {
    let calls = BTreeMap::from([(call, Vec::new())]);
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, action, ARCH.try_into()?)?;
    let program = BpfProgram::try_from(filter)?;
    apply_filter(&program)?;
    Ok(())
}
