//! [`Slot`]: a function pointer that can change, and the record of what answers.
//!
//! The slot of a public function starts with a resolver. In the first call, the resolver finds the
//! function that answers, stores its address in the slot, and calls it. The first call is not a
//! special case: like every other call, it loads an address from the slot and calls the code at
//! this address. With a `OnceCell`, each call would have to find out whether the cell is filled.
//! That check would add a load, a test and a branch to every read, for an event that happens once
//! in a process.
//!
//! `routes()` reports what the slots hold. We tried a separate record, but it needed a table of all
//! reasons, and could only repeat what the slots know. Searching the image again would be worse,
//! because in a sandbox this search could find less than the first call did.
//!
//! # Memory ordering
//!
//! A call loads the address with `Relaxed`. This is enough, because every function that a slot has
//! ever held can be called at any time:
//!
//! - A resolver finds the functions again, and then calls the one that answers.
//! - A function of the vDSO is always ready: the kernel mapped the vDSO before the first
//!   instruction of the process, and the vDSO's code never changes.
//! - A fallback depends on no other slot.
//! - An adapter calls the function in another slot, and may find there the function that this other
//!   slot started with. That is either a resolver or a function that returns `ENOSYS`, after which
//!   the caller asks the kernel.
//!
//! A slot is stored with `Release`, and `warm_up()` and `routes()` load it with `Acquire`. So if
//! such a load sees a filled slot, the thread also sees what was stored before: the reason, and the
//! slot that an adapter calls.
//!
//! Two threads can resolve at the same time, and a sandbox around one of them can hide the vDSO
//! from it. So a fallback replaces only the resolver, but a function of the vDSO replaces anything.
//! All threads that find the vDSO find the same functions.

use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::arch::{Entry, Shape};
use crate::choice::{Choice, FallbackReason, Outcome};
use crate::types::{ClockId, Timespec, Timespec32, Timeval};

/// A type of function pointers. `SHAPE` is the C signature of the functions, as the tables of
/// `arch::table` state it for symbols and system calls.
///
/// # Safety
///
/// The type must be a function pointer with the C signature of `SHAPE`.
pub(crate) unsafe trait FnPtr: Copy {
    const SHAPE: Shape;
}

macro_rules! signatures {
    ($($Signature:ident: $Shape:ident = fn($($argument:ty),+) -> $result:ty;)+) => {$(
        pub(crate) type $Signature = extern "C" fn($($argument),+) -> $result;

        // SAFETY: the type is a function pointer, with the signature that `Shape` documents.
        unsafe impl FnPtr for $Signature {
            const SHAPE: Shape = Shape::$Shape;
        }
    )+};
}

// In these signatures, a reference stands for a C pointer through which the function may write, and
// an `Option` of a reference for a C pointer that may also be null.
signatures! {
    ClockFn: Timespec64 = fn(ClockId, &mut Timespec) -> i32;
    ClockFn32: Timespec32 = fn(ClockId, &mut Timespec32) -> i32;
    GettimeofdayFn: Timeval64 = fn(&mut Timeval, Option<&mut ()>) -> i32;
    TimeFn: Time64 = fn(Option<&mut i64>) -> i64;
    GetcpuFn: Getcpu = fn(&mut u32, &mut u32, Option<&mut ()>) -> i32;
}

/// The function pointer through which a public function or an adapter calls. It points to one of
/// four functions, and [`Slot::outcome`] compares addresses to find out which:
///
/// ```text
/// resolver -> the vDSO's function, the adapter or the fallback
/// fallback -> the vDSO's function or the adapter
/// ```
///
/// A fallback is replaced only if two threads resolve at the same time: one finds no function and
/// stores the fallback, and then the other one stores what it has found. Nothing stores the
/// resolver again, so if a first call finds no vDSO, no later call looks for it.
///
/// A slot stores the resolver, the adapter and the fallback, because Rust does not promise that a
/// function has only one address. So every comparison is with an address that this slot was created
/// with.
pub(crate) struct Slot<F> {
    /// The address of the function.
    address: AtomicPtr<()>,
    /// The function that a new slot holds. In the slot of a public function, it finds the functions
    /// of the vDSO, fills all slots, and then calls the function that the slot holds. In the slots
    /// of `time32`, which only adapters call, it returns an error.
    resolver: F,
    /// A function of this program with the slot's signature. It calls a function of the vDSO that
    /// has another signature.
    adapter: F,
    /// The function that the slot holds if no symbol of the vDSO answers. It returns `ENOSYS`,
    /// after which the caller asks the kernel. Only the fallback of `time` asks the kernel itself.
    fallback: F,
    /// Why the slot has the fallback: an `Option<FallbackReason>`. The first reason stays.
    reason: AtomicU8,
}

/// A symbol of the vDSO that can be called. Without this type, [`Slot::fill`] would be unsafe, and
/// each of its seven calls would need the SAFETY comment that the one call of [`Code::new`] has.
#[derive(Clone, Copy)]
pub(crate) struct Code(Choice);

impl Code {
    /// Vouches for the code at a symbol's address.
    ///
    /// # Safety
    ///
    /// For the life of the process, there must be code with the C signature of the candidate's
    /// shape at the address. It must write only to the variables that its arguments point to, and
    /// accept null where [`FnPtr`] types have an `Option`.
    pub(crate) unsafe fn new(choice: Choice) -> Self {
        Self(choice)
    }
}

impl<F: FnPtr> Slot<F> {
    /// Creates a slot that holds its resolver. A slot needs no adapter if every symbol that can
    /// answer has the slot's own signature. The caller then also passes the fallback as `adapter`.
    pub(crate) const fn new(resolver: F, adapter: F, fallback: F) -> Self {
        Self {
            address: AtomicPtr::new(address_of(resolver)),
            resolver,
            adapter,
            fallback,
            reason: AtomicU8::new(byte_of(None)),
        }
    }

    /// Returns the function.
    #[inline]
    pub(crate) fn get(&self) -> F {
        let address = self.address.load(Ordering::Relaxed);
        // SAFETY: `new` and `fill` store only addresses of functions of type `F`: functions of this
        // program, or functions of the vDSO, for which `Code` vouches.
        unsafe { function_at(address) }
    }

    /// Stores the function that was found, or the adapter for it. If none was found, stores the
    /// reason unless there is one already, and stores the fallback if the slot still holds the
    /// resolver.
    pub(crate) fn fill(&self, found: Result<Code, FallbackReason>) {
        match found {
            Ok(Code(Choice { candidate, address })) => {
                let address = if candidate.shape == F::SHAPE {
                    ptr::with_exposed_provenance_mut(address)
                } else {
                    address_of(self.adapter)
                };
                self.address.store(address, Ordering::Release);
            }
            Err(reason) => {
                let _ = self.reason.compare_exchange(
                    byte_of(None),
                    byte_of(Some(reason)),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                let _ = self.address.compare_exchange(
                    address_of(self.resolver),
                    address_of(self.fallback),
                    Ordering::Release,
                    Ordering::Relaxed,
                );
            }
        }
    }

    /// Returns whether a first call has filled the slot.
    pub(crate) fn is_filled(&self) -> bool {
        self.address.load(Ordering::Acquire) != address_of(self.resolver)
    }

    /// Returns the candidate that the slot holds, or why it holds none. `adapted` is the outcome of
    /// the slot that the adapter calls.
    pub(crate) fn outcome(&self, entry: &'static Entry, adapted: Outcome) -> Outcome {
        let address = self.address.load(Ordering::Acquire);
        if address == address_of(self.fallback) || address == address_of(self.resolver) {
            let reason = reason_of(self.reason.load(Ordering::Relaxed));
            return Err(reason.unwrap_or(FallbackReason::NoSymbol));
        }
        if address == address_of(self.adapter) {
            return adapted;
        }
        let own = entry
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
/// For the life of the process, there must be code with the signature of `F` at the address.
#[inline]
unsafe fn function_at<F: FnPtr>(address: *mut ()) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
    // SAFETY: `F` is a function pointer (`FnPtr`), and the caller promises that code with the
    // signature of `F` is at `address`.
    unsafe { mem::transmute_copy(&address) }
}

const fn address_of<F: FnPtr>(function: F) -> *mut () {
    const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
    // SAFETY: `F` is a function pointer (`FnPtr`), so it is as large as an address.
    unsafe { mem::transmute_copy(&function) }
}

const fn byte_of(reason: Option<FallbackReason>) -> u8 {
    // SAFETY: `transmute` compiles only if the type is one byte long. The type has several values,
    // and only this byte can tell them apart, so it is never padding and is always initialised.
    unsafe { mem::transmute(reason) }
}

fn reason_of(byte: u8) -> Option<FallbackReason> {
    // SAFETY: `new` and `fill` store only what `byte_of` returned.
    unsafe { mem::transmute(byte) }
}
