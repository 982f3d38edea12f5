//! Every function of the crate on the clock of this machine, and the plain types.
//!
//! These tests call the crate in their own process. A test that needs a first call is in
//! `tests/process`.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod clock_states;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod ids;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod instant;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod live;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sources;
#[cfg(all(feature = "std", any(target_os = "linux", target_os = "android")))]
mod std_conversions;
mod tables;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod timespec;
