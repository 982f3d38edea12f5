//! tokio: sleeps until an instant of vdso-time.

use std::time::Duration;

use vdso_time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let deadline = Instant::now() + Duration::from_millis(20);
    let deadline_of_std = std::time::Instant::from(deadline);
    tokio::time::sleep_until(deadline_of_std.into()).await;
    assert!(Instant::now() >= deadline);
    let late = deadline.elapsed();
    println!("it is {late:?} after the deadline");
}
