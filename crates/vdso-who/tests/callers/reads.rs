//! Rounds of four reads: three in `often`, one in `seldom`. Prints the rounds and nanoseconds.

use std::hint::black_box;
use std::time::{Duration, Instant};

#[inline(never)]
fn often() {
    for _ in 0..3 {
        black_box(Instant::now());
    }
}

#[inline(never)]
fn seldom(start: Instant) -> Duration {
    black_box(Instant::now()) - start
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>().unwrap());
    let (rounds, limit) = (numbers.next().unwrap(), Duration::from_nanos(numbers.next().unwrap()));
    let start = Instant::now();
    let (mut round, mut passed) = (0, Duration::ZERO);
    while round < rounds && passed < limit {
        often();
        passed = seldom(start);
        // If reads are counted, the buffers must not get full while names are looked up.
        if round % 10 == 0 && rounds < 100_000 {
            std::thread::sleep(Duration::from_millis(if round == 0 { 700 } else { 1 }));
        }
        round += 1;
    }
    println!("{round} {}", passed.as_nanos());
}
