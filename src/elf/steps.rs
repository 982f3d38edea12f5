//! Where a walk takes a step. Of this the library has nothing: the property tests compile the walker once more, with
//! `--cfg vdso_time_steps`, and count.

#[cfg(vdso_time_steps)]
std::thread_local! {
    /// How many steps this thread took.
    pub(crate) static TAKEN: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// So many numbers, or bytes of a string, are read here.
#[inline]
pub(super) fn take(steps: usize) {
    #[cfg(vdso_time_steps)]
    TAKEN.with(|taken| taken.set(taken.get().saturating_add(steps as u64)));
    #[cfg(not(vdso_time_steps))]
    let _ = steps;
}
