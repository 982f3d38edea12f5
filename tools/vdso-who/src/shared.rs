//! What the threads of a measurement know of each other.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// What the thread that takes the records and the thread that counts them know of each other.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The records that wait to be counted.
    pub(crate) waiting: AtomicUsize,
    pub(crate) samples: AtomicU64,
    pub(crate) reads: AtomicU64,
    download: Mutex<String>,
}

impl Shared {
    pub(crate) fn set_download(&self, path: &Path) {
        if let Ok(mut download) = self.download.lock() {
            // A process chose the name, and a terminal obeys control characters.
            *download = path.to_string_lossy().escape_debug().to_string();
        }
    }

    /// Returns the file that is downloaded, or an empty name.
    pub(crate) fn download(&self) -> String {
        self.download.lock().map(|download| download.clone()).unwrap_or_default()
    }
}
