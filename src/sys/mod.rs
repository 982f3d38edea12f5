//! Chooses what answers on this target: the vDSO, libc or std. No other module makes this choice.
//!
//! The three modules `vdso`, `libc` and `std` have the same items: `calls` with the public
//! functions, `syscall` (on Linux), `routes` and `warm_up`. build.rs sets the cfg flags. Without
//! `vdso_time_clock`, lib.rs leaves this module out, and only types and traits exist.

// On the architectures that have a table in `arch`, the vDSO answers.
#[cfg(all(vdso_time_linux, not(vdso_time_libc_fallback)))]
mod vdso;
#[cfg(all(vdso_time_linux, not(vdso_time_libc_fallback)))]
use self::vdso as imp;

// libc answers elsewhere on Linux. `ARCH` lists these targets.
#[cfg(all(vdso_time_linux, vdso_time_libc_fallback))]
mod libc;
#[cfg(all(vdso_time_linux, vdso_time_libc_fallback))]
use self::libc as imp;

// std's clocks answer on other systems.
#[cfg(not(vdso_time_linux))]
mod std;
#[cfg(not(vdso_time_linux))]
use self::std as imp;

pub(crate) use imp::calls;
#[cfg(vdso_time_linux)]
pub(crate) use imp::syscall;
pub use imp::{routes, warm_up};
