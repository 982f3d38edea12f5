//! The progress of a measurement.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// The news from the thread that counts the records to the thread that takes them.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The records that wait to be counted.
    pub(crate) waiting: AtomicUsize,
    /// The samples, or the counted reads.
    pub(crate) samples: AtomicU64,
    /// The samples in clock reads.
    pub(crate) reads: AtomicU64,
    /// The file whose debug information a debuginfod server is asked for now.
    download: Mutex<Option<String>>,
}

impl Progress {
    pub(crate) fn set_download(&self, path: Option<&Path>) {
        if let Ok(mut download) = self.download.lock() {
            // A process chose the name, and a terminal obeys control characters.
            *download = path.map(|path| path.to_string_lossy().escape_debug().to_string());
        }
    }

    pub(crate) fn download(&self) -> Option<String> {
        self.download.lock().ok()?.clone()
    }
}
