//! [`Slot`]: a function pointer that can change, and the record of what answers.
//!
//! The slot of a public function starts as its resolver, which finds the function that answers,
//! stores it and calls it. So a call loads an address and calls it. A `OnceCell` would test before
//! each call whether it is the first: one more load, a test and a branch in every read, for what
//! happens once in a process.
//!
//! `routes()` reports what the slots hold. A record beside them was tried: it took a table of all
//! reasons, and could only repeat what the slots know. A new search of the image would be worse: in
//! a sandbox it could find less than the first call did.
//!
//! # Memory ordering
//!
//! A call loads `Relaxed`, because every address that a slot ever held can be called at any time:
//!
//! - The resolver resolves again.
//! - The kernel mapped the vDSO before the first instruction of the process, and it never changes.
//! - A function of this crate may call another slot and find the first function there. That one
//!   resolves again, or answers `ENOSYS`, after which the caller asks the kernel.
//!
//! A slot is filled by `Release`, and `warm_up()` and `routes()` load by `Acquire`. So a thread
//! that sees a filled slot there sees what was stored before it: the reason, and the slot that an
//! adapter calls.
//!
//! Two threads may resolve at once, and a sandbox around one of them may hide the vDSO from it. So
//! its fallback replaces only the resolver, and a function of the vDSO replaces anything. All
//! threads that find the vDSO find the same functions.

use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::arch::{Function, Shape};
use crate::choice::{Choice, FallbackReason, Outcome};
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

/// The function that a call goes through: one of these four.
pub(crate) struct Slot<F> {
    /// The vDSO's function, or one of the following.
    address: AtomicPtr<()>,
    /// What the slot starts as.
    first: F,
    /// What calls a function of the vDSO with another signature.
    adapter: F,
    /// What answers if the vDSO does not: `ENOSYS`, after which the caller asks the kernel. That of
    /// `time` asks the kernel itself.
    empty: F,
    /// Why the slot is empty: an `Option<FallbackReason>`. The first reason stays.
    reason: AtomicU8,
}

/// A symbol of the vDSO that can be called.
#[derive(Clone, Copy)]
pub(crate) struct Code(Choice);

impl Code {
    /// Trusts the code at a symbol's address.
    ///
    /// # Safety
    ///
    /// At the address must be code with the C signature of the candidate's shape, for the life of
    /// the process. It must write only to the variables that its arguments point to, and accept
    /// null where [`FnPtr`] types have an `Option`.
    pub(crate) unsafe fn new(choice: Choice) -> Self {
        Self(choice)
    }
}

impl<F: FnPtr> Slot<F> {
    /// Creates a slot that holds its first function. `adapter` is the same as `empty` if no
    /// candidate has another signature.
    pub(crate) const fn new(first: F, adapter: F, empty: F) -> Self {
        let (address, reason) = (
            AtomicPtr::new(address_of(first)),
            AtomicU8::new(byte_of(None)),
        );
        Self {
            address,
            first,
            adapter,
            empty,
            reason,
        }
    }

    /// Returns the function.
    #[inline]
    pub(crate) fn get(&self) -> F {
        let address = self.address.load(Ordering::Relaxed);
        // SAFETY: `new` and `fill` store only the address of an `F`, in this program or in the vDSO
        // (`Code`).
        unsafe { function_at(address) }
    }

    /// Stores the function that was found, or the adapter for it. If there is none, stores the
    /// reason, and replaces the first function by `empty`.
    pub(crate) fn fill(&self, found: Result<Code, FallbackReason>) {
        match found {
            Ok(Code(Choice { candidate, address })) => {
                let is_own = candidate.shape == F::SHAPE;
                let own = ptr::with_exposed_provenance_mut(address);
                self.address.store(
                    if is_own {
                        own
                    } else {
                        address_of(self.adapter)
                    },
                    Ordering::Release,
                );
            }
            Err(reason) => {
                let (none, reason) = (byte_of(None), byte_of(Some(reason)));
                let _ = self.reason.compare_exchange(
                    none,
                    reason,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                let (first, empty) = (address_of(self.first), address_of(self.empty));
                let _ = self.address.compare_exchange(
                    first,
                    empty,
                    Ordering::Release,
                    Ordering::Relaxed,
                );
            }
        }
    }

    /// Returns whether a first call has filled the slot.
    pub(crate) fn is_filled(&self) -> bool {
        self.address.load(Ordering::Acquire) != address_of(self.first)
    }

    /// Returns the candidate that the slot holds, or why it holds none. `adapted` returns that of
    /// the slot that the adapter calls.
    pub(crate) fn outcome(
        &self,
        function: &'static Function,
        adapted: impl FnOnce() -> Outcome,
    ) -> Outcome {
        let address = self.address.load(Ordering::Acquire);
        if address == address_of(self.empty) || address == address_of(self.first) {
            return Err(
                reason_of(self.reason.load(Ordering::Relaxed)).unwrap_or(FallbackReason::NoSymbol)
            );
        }
        if address == address_of(self.adapter) {
            return adapted();
        }
        let own = function
            .candidates
            .iter()
            .find(|candidate| candidate.shape == F::SHAPE);
        let candidate = own.ok_or(FallbackReason::NoSymbol)?;
        Ok(Choice {
            candidate,
            address: address.expose_provenance(),
        })
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

const fn byte_of(reason: Option<FallbackReason>) -> u8 {
    // SAFETY: the value has one byte, which is its tag.
    unsafe { mem::transmute(reason) }
}

fn reason_of(byte: u8) -> Option<FallbackReason> {
    // SAFETY: `new` and `fill` store only what `byte_of` returned.
    unsafe { mem::transmute(byte) }
}
