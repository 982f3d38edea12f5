//! The progress of a measurement.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// What the counting thread reports to the thread that takes the records out of the kernel's
/// buffers.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// How many records wait to be counted.
    pub(crate) waiting: AtomicUsize,
    /// How many samples, or counted reads, there are so far.
    pub(crate) samples: AtomicU64,
    /// How many samples were in clock reads.
    pub(crate) reads: AtomicU64,
    /// The file whose debug information is being downloaded from a debuginfod server.
    download: Mutex<Option<String>>,
}

impl Progress {
    pub(crate) fn set_download(&self, path: Option<&Path>) {
        if let Ok(mut download) = self.download.lock() {
            // The watched process chose the file and its name. So the name can contain control
            // characters, which a terminal would obey.
            *download = path.map(|path| path.to_string_lossy().escape_debug().to_string());
        }
    }

    pub(crate) fn download(&self) -> Option<String> {
        self.download.lock().ok()?.clone()
    }
}
