//! Counts the steps of the parser in the property tests, which compile it with
//! `--cfg vdso_time_steps`. In the library this does nothing.

#[cfg(vdso_time_steps)]
std::thread_local! {
    /// The number of steps of this thread.
    pub(crate) static TAKEN: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Counts steps: 1 for the read of a number, and 1 for each byte of a string that is read.
#[inline]
pub(super) fn take(steps: usize) {
    #[cfg(vdso_time_steps)]
    TAKEN.with(|taken| taken.set(taken.get().saturating_add(steps as u64)));
    #[cfg(not(vdso_time_steps))]
    let _ = steps;
}
