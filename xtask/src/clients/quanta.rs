// The private items of quanta that its tests use: the kernel's clock and the counter.

#[cfg(test)]
#[derive(Default)]
struct Counter;

#[cfg(test)]
impl Counter {
    fn now(&self) -> u64 {
        vdso_time_counter::Ticks::read().as_raw()
    }
}

#[cfg(test)]
#[derive(Default)]
struct Monotonic;

#[cfg(test)]
impl Monotonic {
    fn now(&self) -> u64 {
        vdso_time::Instant::<vdso_time::Monotonic>::now().as_nanos() as u64
    }
}

#[cfg(test)]
impl Clock {
    /// Follows the kernel's clock without it.
    fn reset_timebase(&mut self) {}
}
