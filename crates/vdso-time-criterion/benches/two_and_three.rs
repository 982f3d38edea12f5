//! `cargo bench -p vdso-time-criterion`: routines of about 2 ns and 3 ns with each measurement, in
//! batches of thousands, where all agree, and call by call.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(unsafe_code, reason = "a multiplication that stays in its place and in a register")]

use std::time::Duration;

use criterion::measurement::{Measurement, WallTime};
use criterion::{BatchSize, Bencher, Criterion};
use vdso_time::Monotonic;
use vdso_time_criterion::{CounterTime, VdsoTime};

/// Multiplies `STEPS` times. Each step waits for the one before, for about 1 ns.
#[inline]
fn routine<const STEPS: u32>(mut value: u64) -> u64 {
    for _ in 0..STEPS {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction changes its register and the flags.
        unsafe {
            std::arch::asm!("imul {0}, {0}", inout(reg) value, options(nomem, nostack));
        };
        #[cfg(not(target_arch = "x86_64"))]
        {
            value = std::hint::black_box(value.wrapping_mul(value));
        }
    }
    value
}

fn bench<M: Measurement + 'static>(name: &str, measurement: M, run: [fn(&mut Bencher<'_, M>); 2]) {
    let criterion = Criterion::default().without_plots().measurement_time(Duration::from_secs(2));
    let mut criterion = criterion.with_measurement(measurement).configure_from_args();
    for (steps, run) in ["2 steps", "3 steps"].into_iter().zip(run) {
        criterion.bench_function(&format!("{name}, {steps}"), run);
    }
}

fn batch<const STEPS: u32>(bencher: &mut Bencher<'_>) {
    let mut value = 3;
    bencher.iter(|| {
        value = routine::<STEPS>(value);
        value
    });
}

fn call<const STEPS: u32, M: Measurement>(bencher: &mut Bencher<'_, M>) {
    bencher.iter_batched(|| 3, routine::<STEPS>, BatchSize::PerIteration);
}

fn main() {
    bench("batches, WallTime", WallTime, [batch::<2>, batch::<3>]);
    bench("call by call, WallTime", WallTime, [call::<2, _>, call::<3, _>]);
    bench("call by call, VdsoTime", VdsoTime::<Monotonic>::default(), [call::<2, _>, call::<3, _>]);
    match CounterTime::new() {
        Ok(counter) => bench("call by call, CounterTime", counter, [call::<2, _>, call::<3, _>]),
        Err(status) => println!("call by call, CounterTime: {status}"),
    }
}
