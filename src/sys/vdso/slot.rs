//! [`Slot`]: a function pointer that can change.
//!
//! The slot of a public function starts as its resolver, which finds the function that answers,
//! stores it and calls it. So a call does not test whether it is the first: it loads an address
//! and calls it.
//!
//! # Memory ordering
//!
//! Every access is `Relaxed`, because no other data is published with an address, and every address
//! that a slot ever held can be called at any time. (`warm_up` needs more: a thread that sees a
//! record sees every slot filled.)
//!
//! - The resolver resolves again.
//! - The kernel mapped the vDSO before the first instruction of the process, and it never changes.
//! - A function of this crate may call another slot and find the first function there. That one
//!   resolves again, or answers `ENOSYS`, after which the caller asks the kernel.
//!
//! Two threads may resolve at once, and a sandbox around one of them may hide the vDSO from it. So
//! its fallback replaces only the resolver, and a function of the vDSO replaces anything. All
//! threads that find the vDSO find the same functions.

use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::arch::Shape;
use crate::types::{ClockId, Timespec, Timespec32, Timeval};

/// A function pointer, and the shape that the tables have for its signature.
///
/// # Safety
///
/// The type must be a function pointer with the C signature of `SHAPE`.
pub(crate) unsafe trait FnPtr: Copy {
    const SHAPE: Shape;
}

macro_rules! functions {
    ($($Function:ident: $Shape:ident = fn($($argument:ty),+) -> $result:ty;)+) => {$(
        pub(crate) type $Function = extern "C" fn($($argument),+) -> $result;

        // SAFETY: the type is a function pointer, with the signature that `Shape` documents.
        unsafe impl FnPtr for $Function {
            const SHAPE: Shape = Shape::$Shape;
        }
    )+};
}

// A reference is a pointer that is valid for writes. `None` is null.
functions! {
    ClockFn: Timespec64 = fn(ClockId, &mut Timespec) -> i32;
    ClockFn32: Timespec32 = fn(ClockId, &mut Timespec32) -> i32;
    GettimeofdayFn: Timeval64 = fn(&mut Timeval, Option<&mut ()>) -> i32;
    TimeFn: Time64 = fn(Option<&mut i64>) -> i64;
    GetcpuFn: Getcpu = fn(&mut u32, &mut u32, Option<&mut ()>) -> i32;
}

/// The function that a call goes through.
pub(crate) struct Slot<F> {
    address: AtomicPtr<()>,
    /// The function that `new` stored.
    first: F,
}

impl<F: FnPtr> Slot<F> {
    /// Creates a slot with its first function.
    pub(crate) const fn new(first: F) -> Self {
        Self { address: AtomicPtr::new(address_of(first)), first }
    }

    /// Returns the function.
    #[inline]
    pub(crate) fn get(&self) -> F {
        let address = self.address.load(Ordering::Relaxed);
        // SAFETY: `new`, `set` and `fill` store only the address of an `F`.
        unsafe { function_at(address) }
    }

    /// Stores the function that was found.
    pub(crate) fn set(&self, found: F) {
        self.address.store(address_of(found), Ordering::Relaxed);
    }

    /// Stores the function that was found. If none was, stores the fallback in place of the first
    /// function.
    pub(crate) fn fill(&self, found: Option<F>, fallback: F) {
        if let Some(found) = found {
            return self.set(found);
        }
        let (first, fallback) = (address_of(self.first), address_of(fallback));
        let _ = self.address.compare_exchange(first, fallback, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The address of a function, and its shape.
#[derive(Clone, Copy)]
pub(crate) struct Code {
    pub(super) shape: Shape,
    address: *mut (),
}

impl Code {
    /// # Safety
    ///
    /// At the address must be code with the C signature of the shape, for the life of the process.
    /// It must write only to the variables that its arguments point to, and accept null where
    /// [`FnPtr`] types have an `Option`.
    pub(crate) unsafe fn new(shape: Shape, address: usize) -> Self {
        Self { shape, address: ptr::with_exposed_provenance_mut(address) }
    }

    /// Returns the function if it has the signature of `F`.
    pub(crate) fn function<F: FnPtr>(self) -> Option<F> {
        if self.shape != F::SHAPE || self.address.is_null() {
            return None;
        }
        // SAFETY: the caller of `new` promised that the code has this shape, which is the one of
        // `F`.
        Some(unsafe { function_at(self.address) })
    }
}

/// Returns the function at an address.
///
/// # Safety
///
/// The address must be that of code with the signature of `F`, for the life of the process.
#[inline]
unsafe fn function_at<F: FnPtr>(address: *mut ()) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
    // SAFETY: `F` is a function pointer (`FnPtr`), and the caller promises that its code is there.
    unsafe { mem::transmute_copy(&address) }
}

const fn address_of<F: FnPtr>(function: F) -> *mut () {
    const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
    // SAFETY: `F` is a function pointer (`FnPtr`), so it is as large as an address.
    unsafe { mem::transmute_copy(&function) }
}
