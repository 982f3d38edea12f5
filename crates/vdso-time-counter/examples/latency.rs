//! `cargo run -p vdso-time-counter --example latency`: measures the time of a short operation with
//! this crate's clock, and prints how far the clock can be off.

use std::hint::black_box;
use std::time::Duration;

use vdso_time_counter::{CounterMonotonicUnordered, Ticks, check, state};

fn main() {
    if let Err(reason) = check() {
        println!("no counter: {reason}");
    }
    // The vDSO answers in the first 11 ms of reads.
    let first = CounterMonotonicUnordered::now();
    while !state().status.is_used() && first.elapsed() < Duration::from_millis(50) {}

    let start = CounterMonotonicUnordered::now();
    black_box((0..1000_u64).fold(1, |hash: u64, byte| {
        (hash ^ byte).wrapping_mul(0x100_0000_01b3)
    }));
    println!("a hash took {:?}", start.elapsed());

    // A stamp is the counter's value. It becomes a time just before it is printed.
    let stamp = Ticks::read();
    if let Some(time) = stamp.monotonic() {
        println!("a stamp {:?} after the start", time - start);
    }
    println!("{}, within {:?}", state().status, state().error_bound);
}
