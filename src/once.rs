//! [`OnceFn`]: a function pointer that is set once, and right in every state.
//!
//! A slot is born holding its resolver: a function of the same signature, which finds the real one, stores it,
//! and finishes the call by it. So the hot path has no test: it loads an address and calls it.
//!
//! # Memory ordering
//!
//! Every access is `Relaxed`, because nothing else is published with the address. What a slot may hold is the
//! resolver, which is right at any time, or the address of code that was there before the process ran its first
//! instruction (the kernel mapped the vDSO) or is part of the program, and that never changes. A thread that still
//! sees the resolver resolves again and stores what it found; two threads that found different answers (a sandbox
//! around one of them) each stored a right one. An adapter that reads a second slot finds that one right in
//! every state too, so no order between two slots matters.

#![allow(unsafe_code, reason = "an address becomes a function pointer here")]

use core::marker::PhantomData;
use core::mem;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::types::{Timespec, Timespec32, Timeval, Timeval32};

/// A type of function pointers.
///
/// # Safety
/// The type must be a function pointer of Rust: as large as an address, and never null.
pub(crate) unsafe trait FnPtr: Copy {}

/// `int clock_gettime(clockid_t, struct __kernel_timespec *)`; clock_getres is the same.
pub(crate) type ClockFn = unsafe extern "C" fn(i32, *mut Timespec) -> i32;
/// The same with `struct old_timespec32`.
pub(crate) type ClockFn32 = unsafe extern "C" fn(i32, *mut Timespec32) -> i32;
/// `int gettimeofday(struct timeval *, struct timezone *)`.
pub(crate) type GettimeofdayFn = unsafe extern "C" fn(*mut Timeval, *mut ()) -> i32;
/// The same where `long` is 32 bits.
pub(crate) type GettimeofdayFn32 = unsafe extern "C" fn(*mut Timeval32, *mut ()) -> i32;
/// `time_t time(time_t *)`.
pub(crate) type TimeFn = unsafe extern "C" fn(*mut i64) -> i64;
/// The same where `long` is 32 bits.
pub(crate) type TimeFn32 = unsafe extern "C" fn(*mut i32) -> i32;
/// `int getcpu(unsigned *cpu, unsigned *node, void *unused)`.
pub(crate) type GetcpuFn = unsafe extern "C" fn(*mut u32, *mut u32, *mut ()) -> i32;

// SAFETY: a function pointer.
unsafe impl FnPtr for ClockFn {}
// SAFETY: a function pointer.
unsafe impl FnPtr for ClockFn32 {}
// SAFETY: a function pointer.
unsafe impl FnPtr for GettimeofdayFn {}
// SAFETY: a function pointer.
unsafe impl FnPtr for GettimeofdayFn32 {}
// SAFETY: a function pointer.
unsafe impl FnPtr for TimeFn {}
// SAFETY: a function pointer.
unsafe impl FnPtr for TimeFn32 {}
// SAFETY: a function pointer.
unsafe impl FnPtr for GetcpuFn {}

/// The slot of a function.
pub(crate) struct OnceFn<F> {
    address: AtomicPtr<()>,
    function: PhantomData<F>,
}

impl<F: FnPtr> OnceFn<F> {
    /// A slot that holds its resolver.
    pub(crate) const fn new(resolver: F) -> Self {
        Self { address: AtomicPtr::new(Self::address_of(resolver)), function: PhantomData }
    }

    /// The function: the resolver, or what it stored.
    #[inline]
    pub(crate) fn get(&self) -> F {
        let address = self.address.load(Ordering::Relaxed);
        // SAFETY: `new` and `set` alone store here, and they store the address of code of this signature.
        unsafe { Self::at(address) }
    }

    /// Stores the function.
    pub(crate) fn set(&self, function: F) {
        self.address.store(Self::address_of(function), Ordering::Relaxed);
    }

    /// Whether it is this function that is held, which must not be inlinable: else it may have several addresses.
    pub(crate) fn holds(&self, function: F) -> bool {
        self.address() == Self::address_of(function).addr()
    }

    /// The address that is held.
    pub(crate) fn address(&self) -> usize {
        self.address.load(Ordering::Relaxed).addr()
    }

    /// The function of an address.
    ///
    /// # Safety
    /// The address must be that of code of exactly this signature, there for the life of the process.
    #[inline]
    pub(crate) unsafe fn at(address: *mut ()) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
        // SAFETY: `F` is a function pointer (`FnPtr`), and the caller vouches for what it points to.
        unsafe { mem::transmute_copy(&address) }
    }

    const fn address_of(function: F) -> *mut () {
        const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
        // SAFETY: `F` is a function pointer (`FnPtr`), so it is as large as an address.
        unsafe { mem::transmute_copy(&function) }
    }
}
