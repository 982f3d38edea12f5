//! [`Slot`]: a function pointer that starts as its resolver and is right in every state.
//! [`Symbol`]: a function pointer that starts as null.
//!
//! A slot starts as a function of the same signature that finds the real one, stores it and calls it.
//! So the hot path has no test: it loads an address and calls it.
//!
//! # Memory ordering
//!
//! Every access is `Relaxed`, because no other data is published with an address. A slot holds its
//! resolver, which is right at any time, or the address of code that never changes: the vDSO, which the
//! kernel mapped before the first instruction of the process, or a part of the program. A thread that
//! still sees the resolver resolves again. If two threads find different answers (a sandbox around one
//! of them), each stores a right one. An adapter that sees a null [`Symbol`] asks the kernel. So no
//! order between two pointers matters.

#![allow(unsafe_code, reason = "an address becomes a function pointer here")]

use core::marker::PhantomData;
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::types::{Timespec, Timespec32, Timeval, Timeval32};

/// A type of function pointers.
///
/// # Safety
/// The type must be a function pointer of Rust: as large as an address, and never null.
pub(crate) unsafe trait FnPtr: Copy {}

/// `int clock_gettime(clockid_t, struct __kernel_timespec *)`; clock_getres has the same signature.
pub(crate) type ClockFn = unsafe extern "C" fn(i32, *mut Timespec) -> i32;
/// The same with `struct old_timespec32`.
pub(crate) type ClockFn32 = unsafe extern "C" fn(i32, *mut Timespec32) -> i32;
/// `int gettimeofday(struct timeval *, struct timezone *)`.
pub(crate) type GettimeofdayFn = unsafe extern "C" fn(*mut Timeval, *mut ()) -> i32;
/// The same where `long` has 32 bits.
pub(crate) type GettimeofdayFn32 = unsafe extern "C" fn(*mut Timeval32, *mut ()) -> i32;
/// `time_t time(time_t *)`.
pub(crate) type TimeFn = unsafe extern "C" fn(*mut i64) -> i64;
/// The same where `long` has 32 bits.
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

/// The function that a call goes through. It is never null.
pub(crate) struct Slot<F> {
    address: AtomicPtr<()>,
    function: PhantomData<F>,
}

impl<F: FnPtr> Slot<F> {
    /// A slot that holds its resolver.
    pub(crate) const fn new(resolver: F) -> Self {
        Self { address: AtomicPtr::new(address_of(resolver)), function: PhantomData }
    }

    /// The resolver, or the function that it stored.
    #[inline]
    pub(crate) fn get(&self) -> F {
        let address = self.address.load(Ordering::Relaxed);
        // SAFETY: only `new` and `set` store here, and they store the address of an `F`.
        unsafe { function_at(address) }
    }

    /// Stores the function.
    pub(crate) fn set(&self, function: F) {
        self.address.store(address_of(function), Ordering::Relaxed);
    }
}

/// The vDSO's function behind an adapter; null where the vDSO has none of this signature.
pub(crate) struct Symbol<F> {
    address: AtomicPtr<()>,
    function: PhantomData<F>,
}

impl<F: FnPtr> Symbol<F> {
    /// No function.
    pub(crate) const fn none() -> Self {
        Self { address: AtomicPtr::new(ptr::null_mut()), function: PhantomData }
    }

    /// The function, if there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<F> {
        let address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            return None;
        }
        // SAFETY: only `set` stores here, and its caller promises that the address is that of an `F`.
        Some(unsafe { function_at(address) })
    }

    /// Stores the address of the function.
    ///
    /// # Safety
    /// The address must be that of code of exactly this signature that stays for the life of the process.
    pub(crate) unsafe fn set(&self, address: *mut ()) {
        self.address.store(address, Ordering::Relaxed);
    }
}

/// The function at an address.
///
/// # Safety
/// The address must be that of code of exactly this signature that stays for the life of the process.
#[inline]
pub(crate) unsafe fn function_at<F: FnPtr>(address: *mut ()) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
    // SAFETY: `F` is a function pointer (`FnPtr`), and the caller promises what the address points to.
    unsafe { mem::transmute_copy(&address) }
}

const fn address_of<F: FnPtr>(function: F) -> *mut () {
    const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
    // SAFETY: `F` is a function pointer (`FnPtr`), so it is as large as an address.
    unsafe { mem::transmute_copy(&function) }
}
