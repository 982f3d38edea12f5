//! The thread that counts the records.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Scope, ScopedJoinHandle, sleep};
use std::time::Instant;

use super::watch::TICK;
use crate::arguments::Arguments;
use crate::error::{Result, ended};
use crate::perf::Event;
use crate::progress::Progress;
use crate::screen::Observer;
use crate::tally::{self, Findings, Message};

/// How many records may wait to be counted. If more wait, the next ones stay in the kernel's
/// buffers. The record of a sample takes 8 KiB, because it contains a copy of the stack.
const MOST_WAITING: usize = 1 << 10;

/// A thread that counts the records. It also looks up the names of callers, which can take long.
/// The thread that takes the records out of the kernel's buffers does not wait for the counting
/// thread. So even during a slow lookup, the buffers are emptied, until `MOST_WAITING` records
/// wait, and the end of the process is noticed.
pub(super) struct Counter<'a, 'scope> {
    queue: Sender<Message<'a>>,
    pub(super) progress: Arc<Progress>,
    thread: ScopedJoinHandle<'scope, Findings>,
}

impl<'a: 'scope, 'scope> Counter<'a, 'scope> {
    pub(super) fn start(
        scope: &'scope Scope<'scope, '_>,
        arguments: &'a Arguments,
        pid: Option<u32>,
    ) -> Self {
        let (queue, messages) = channel();
        let progress = Arc::<Progress>::default();
        let shared = progress.clone();
        let thread = scope.spawn(move || tally::count(arguments, pid, messages, &shared));
        Self {
            queue,
            progress,
            thread,
        }
    }

    pub(super) fn send(&self, event: Event) {
        self.progress.waiting.fetch_add(1, Relaxed);
        // Sending fails only if the counting thread has panicked.
        let _ = self.queue.send(Message::Event(event));
    }

    /// Asks the counting thread to call `to` with what it has found since the last such request.
    pub(super) fn take(&self, to: impl FnOnce(Findings) + Send + 'a) {
        // Sending fails only if the counting thread has panicked.
        let _ = self.queue.send(Message::Take(Box::new(to)));
    }

    /// Returns whether too many records wait.
    pub(super) fn is_behind(&self) -> bool {
        self.progress.waiting.load(Relaxed) > MOST_WAITING
    }

    /// Waits until the counting thread is not behind any more.
    pub(super) fn catch_up(&self) {
        while self.is_behind() && !self.thread.is_finished() {
            sleep(TICK);
        }
    }

    /// Waits until all records are counted. This can take long, because the lookup of a name can
    /// download a debug file. `seconds` is how long the measurement took.
    pub(super) fn finish(self, observer: &dyn Observer, seconds: f64) -> Result<Findings> {
        // Once there is no sender, the counting thread ends.
        drop(self.queue);
        let start = Instant::now();
        while !self.thread.is_finished() {
            // The time goes on, so that the observer goes on showing the progress.
            let seconds = seconds + start.elapsed().as_secs_f64();
            observer.is_over(&self.progress, seconds);
            sleep(TICK);
        }
        self.thread.join().map_err(ended)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::sync_channel;
    use std::sync::mpsc::{RecvTimeoutError, SyncSender};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::arguments::arguments;
    use crate::report::Report;

    /// An observer that closes a channel when the time has gone on.
    struct Patient(Mutex<Option<SyncSender<()>>>);

    impl Observer for Patient {
        fn is_over(&self, _: &Progress, seconds: f64) -> bool {
            assert!(seconds >= 5.0);
            if seconds > 5.1 {
                self.0.lock().unwrap().take();
            }
            false
        }

        fn interval(&self, _: &Report) {}
    }

    /// Keeps the counting thread busy after the measurement, as the download of a file would.
    #[test]
    fn the_time_goes_on_while_the_last_records_are_counted() {
        let (sender, receiver) = sync_channel(0);
        let observer = Patient(Mutex::new(Some(sender)));
        let arguments = arguments("--all");
        thread::scope(|scope| {
            let counter = Counter::start(scope, &arguments, None);
            counter.take(move |_| {
                let closed = receiver.recv_timeout(Duration::from_secs(20));
                assert_eq!(closed, Err(RecvTimeoutError::Disconnected));
            });
            counter.finish(&observer, 5.0).unwrap();
        });
    }
}
