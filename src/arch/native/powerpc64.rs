//! The system call of `powerpc64`: libc's.

pub(crate) use super::by_libc::syscall;
pub(crate) use crate::arch::table::powerpc64::ABI;
