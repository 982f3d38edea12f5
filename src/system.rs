//! The one choice of the system: what answers on this target.

#[cfg(vdso_time_linux)]
pub(crate) use crate::linux::{calls, routes};
#[cfg(not(vdso_time_linux))]
pub(crate) use crate::other_os::{calls, routes};
