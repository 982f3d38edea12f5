//! [`SameScale`]: the clocks whose times convert to times of another clock.

/// A clock whose times are on the scale of clock `S`, which means that the same number is the same
/// moment on both clocks.
///
/// Times of two clocks cannot be compared or subtracted, even if both clocks are on one scale,
/// because one of them can be behind the other: a coarse clock is behind by up to a timer tick. But
/// the times convert. The times of a clock that is `SameScale<Monotonic>` convert `into` an
/// [`Instant`], and with the feature `std` into [`std::time::Instant`]. The times of a clock that
/// is `SameScale<Realtime>` convert into a `SystemTime` of this crate, and with the feature `std`
/// into std's type of the same name.
///
/// [`MonotonicCoarse`] is on the scale of `Monotonic`, and [`RealtimeCoarse`] is on the scale of
/// `Realtime`. Each clock of the package `vdso-time-counter` is on one of these two scales.
/// `Boottime`, `MonotonicRaw` and `Tai` are on neither.
///
/// Implement `SameScale` for a clock of your own only if the same number means the same moment on
/// both clocks. The compiler cannot check this promise. The conversions do not check it either,
/// because they only copy the number.
///
/// [`Instant`]: crate::Instant
/// [`MonotonicCoarse`]: crate::MonotonicCoarse
/// [`RealtimeCoarse`]: crate::RealtimeCoarse
/// [`std::time::Instant`]: https://doc.rust-lang.org/std/time/struct.Instant.html
///
/// # Examples
///
/// ```
/// use vdso_time::{Errno, Instant, Monotonic, MonotonicClock, MonotonicCoarse, SameScale};
///
/// /// For example, the time at the last turn of an event loop.
/// struct Turn;
///
/// impl MonotonicClock for Turn {
///     fn try_now() -> Result<Instant<Self>, Errno> {
///         Ok(Instant::from_clock_nanos(5))
///     }
/// }
///
/// impl SameScale<Monotonic> for Turn {}
///
/// fn deadline(start: impl Into<Instant>) -> Instant {
///     start.into() + vdso_time::Duration::from_nanos(1)
/// }
///
/// assert_eq!(deadline(Turn::now()), Instant::from_nanos(6));
/// assert!(deadline(MonotonicCoarse::now()) < deadline(Instant::now()));
/// ```
///
/// A clock on another scale does not convert:
///
/// ```compile_fail,E0277
/// let mixed: vdso_time::Instant = vdso_time::Boottime::now().into();
/// ```
// `Monotonic` must never implement `SameScale<Monotonic>`: `From<Instant<C>>` and core's
// `From<T> for T` would then be two conversions from `Instant` to `Instant`.
#[diagnostic::on_unimplemented(message = "the times of `{Self}` are not on the scale of `{S}`")]
pub trait SameScale<S> {}
