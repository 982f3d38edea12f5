//! `cargo run --example clock`: prints the seconds since the Epoch, a wall-clock time stamp, and an
//! interval.

use vdso_time::{Duration, Errno, Instant, SystemTime, UNIX_EPOCH};

fn main() -> Result<(), Errno> {
    println!("time()        {} s since the Epoch", vdso_time::time());

    let stamp = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    println!(
        "SystemTime    {}.{:09} s",
        stamp.as_secs(),
        stamp.subsec_nanos()
    );

    // A wall-clock time stamp in a `struct timeval`, as in C.
    let stamp = vdso_time::gettimeofday()?;
    println!("gettimeofday  {}.{:06} s", stamp.tv_sec, stamp.tv_usec);

    let start = Instant::now();
    let mut reads = 0;
    while start.elapsed() < Duration::from_millis(10) {
        reads += 1;
    }
    println!("Instant       {reads} reads in {:?}", start.elapsed());
    Ok(())
}
