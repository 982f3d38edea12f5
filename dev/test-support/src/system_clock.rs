//! The system's clock, which a test changes only as root, and only in a system that was started for
//! this test.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Need, not_run_here};

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

/// Waits until no other test changes the system.
pub fn turn(need: Need) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if !need.is_required() {
        not_run_here(need, "it would change the clock of the whole system");
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
