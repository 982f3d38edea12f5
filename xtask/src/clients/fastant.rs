// The private items of fastant that its tests use.

#[cfg(test)]
fn current_cycle() -> u64 {
    vdso_time_quanta::Clock::new().raw()
}

#[cfg(test)]
fn nanos_per_cycle() -> f64 {
    1.0
}
