//! tracing-subscriber: each line has the time of the coarse clock.

use vdso_time_adapters::CoarseTime;

fn main() {
    tracing_subscriber::fmt().with_timer(CoarseTime).init();
    tracing::info!(answer = 42, "a line by tracing");
}
