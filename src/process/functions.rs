//! [`Functions`]: the vDSO's functions as pointers with their C signatures.

use core::ffi::c_void;
use core::mem;
use core::ptr::{self, NonNull};

use crate::arch::{NATIVE, Shape};
use crate::choice::{Choice, can_call, decide};
use crate::elf::Image;
use crate::types::{ClockId, Timespec, Timeval};

/// A function of the vDSO, as a pointer with its C signature.
///
/// The function may be called as long as the image is mapped. Each pointer that is passed to it
/// must be aligned and valid for writes, or null if the variant's documentation allows null. The
/// function writes nowhere else.
///
/// [`Time64`](Self::Time64) returns the time. The other functions return 0 or a negated error
/// number; on powerpc64, the error number is positive. `EINVAL` means that the clock does not
/// exist. After any other error, ask the kernel ([`syscall`](crate::syscall)).
///
/// This crate derives the signature from the name of the symbol, and cannot check it. In an image
/// that is not the kernel's ([`Vdso::from_ptr`](super::vdso::Vdso::from_ptr)), the caller of the
/// function vouches that the signature is right.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum VdsoFn {
    /// clock_gettime or clock_getres.
    Timespec64(unsafe extern "C" fn(ClockId, *mut Timespec) -> i32),
    /// clock_gettime or clock_getres with 32-bit seconds and 32-bit nanoseconds. A 32-bit program
    /// gets it if the image has no function with 64-bit times, and always on Android. The seconds
    /// overflow in January 2038.
    Timespec32(unsafe extern "C" fn(ClockId, *mut [i32; 2]) -> i32),
    /// gettimeofday. The second pointer, to a time zone, may be null.
    Timeval64(unsafe extern "C" fn(*mut Timeval, *mut c_void) -> i32),
    /// time. The pointer may be null. The result is the time in seconds.
    Time64(unsafe extern "C" fn(*mut i64) -> i64),
    /// getcpu. It writes the CPU's number to the first pointer and the node's number to the second,
    /// and does not use the third. Each may be null.
    Getcpu(unsafe extern "C" fn(*mut u32, *mut u32, *mut c_void) -> i32),
}

/// The functions of an image: for each call, the function that answers it.
/// [`Vdso::functions`](super::vdso::Vdso::functions) returns them.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Functions {
    /// time, or clock_gettime, which returns the same seconds for [`ClockId::REALTIME_COARSE`].
    pub time: Option<VdsoFn>,
    /// gettimeofday, or clock_gettime, which returns the same time for [`ClockId::REALTIME`].
    pub gettimeofday: Option<VdsoFn>,
    /// clock_gettime.
    pub clock_gettime: Option<VdsoFn>,
    /// clock_getres.
    pub clock_getres: Option<VdsoFn>,
    /// getcpu.
    pub getcpu: Option<VdsoFn>,
}

impl Functions {
    /// Finds the functions of an image in this process's memory. An image of another architecture
    /// has none.
    pub(super) fn of(image: &Image<'_>) -> Self {
        let Some(abi) = NATIVE else {
            return Self::default();
        };
        if !can_call(abi, image) {
            return Self::default();
        }
        let outcomes = decide(abi, image, image.base().expose_provenance());
        let [time, gettimeofday, clock_gettime, clock_getres, getcpu] =
            outcomes.map(|outcome| VdsoFn::of(outcome.ok()?));
        Self {
            time,
            gettimeofday,
            clock_gettime,
            clock_getres,
            getcpu,
        }
    }
}

impl VdsoFn {
    /// Returns the pointer to the code of a symbol. The pointer has the signature that the
    /// architecture's table states for this symbol (`candidate.shape`).
    #[allow(
        clippy::missing_transmute_annotations,
        reason = "each variant states its type"
    )]
    fn of(Choice { candidate, address }: Choice) -> Option<Self> {
        let code = NonNull::new(ptr::with_exposed_provenance_mut::<()>(address))?;
        macro_rules! typed {
            ($($Shape:ident),+) => {
                match candidate.shape {
                    // SAFETY: `code` is not null, so it is a valid function pointer.
                    $(Shape::$Shape => Self::$Shape(unsafe { mem::transmute(code) }),)+
                    Shape::Timeval32 => return None, // no candidate has it
                }
            };
        }
        Some(typed!(Timespec64, Timespec32, Timeval64, Time64, Getcpu))
    }
}
