//! The system's clock, which root can change in a system that was started for it.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{is_required, not_run_here};

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

/// The word of `VDSO_TIME_TEST_REQUIRES` for a system whose clock source a test may change.
pub const SWITCH: &str = "clocksource-switch";

/// One test at a time changes the system, if that was started for it.
pub fn turn(word: &str) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if !is_required(word) {
        not_run_here(word, "it would change the clock of the whole system");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Reads a file about the clock source.
pub fn read(file: &str) -> String {
    fs::read_to_string(format!("{FOLDER}/{file}")).unwrap().trim().to_owned()
}

/// Makes another clock source the current one.
pub fn switch(name: &str) {
    fs::write(format!("{FOLDER}/current_clocksource"), name).unwrap();
}
