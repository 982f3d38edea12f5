//! tokio: sleeps until an instant of vdso-time.

use std::time::Duration;

use vdso_time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let deadline = Instant::now() + Duration::from_millis(20);
    tokio::time::sleep_until(std::time::Instant::from(deadline).into()).await;
    assert!(Instant::now() >= deadline);
    println!("it is {:?} after the deadline", deadline.elapsed());
}
