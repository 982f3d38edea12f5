//! [`Functions`]: the vDSO's functions as pointers with their C signatures.

use core::ffi::c_void;
use core::mem;
use core::ptr::{self, NonNull};

use crate::arch::{NATIVE, Shape};
use crate::choice::{Choice, decide, is_called};
use crate::elf::Image;
use crate::types::{ClockId, Timespec, Timeval};

/// A function of the vDSO, as a pointer with its C signature.
///
/// It may be called while the image is mapped. Its pointers must be aligned and valid for writes.
/// It writes nothing else. The result is 0 or a negated error number; on powerpc64 the number is
/// positive. `EINVAL` means that the clock does not exist. After another error, ask the kernel
/// ([`syscall`](crate::syscall)).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum VdsoFn {
    /// clock_gettime or clock_getres.
    Timespec64(unsafe extern "C" fn(ClockId, *mut Timespec) -> i32),
    /// The same with 32 bits for the seconds and for the nanoseconds, in an image of a 32-bit
    /// architecture that has no 64-bit function. The seconds end in January 2038.
    Timespec32(unsafe extern "C" fn(ClockId, *mut [i32; 2]) -> i32),
    /// gettimeofday. The second pointer, to a time zone, may be null.
    Timeval64(unsafe extern "C" fn(*mut Timeval, *mut c_void) -> i32),
    /// time. The pointer may be null. The result is the time.
    Time64(unsafe extern "C" fn(*mut i64) -> i64),
    /// getcpu. Each pointer may be null: to the CPU's number, to the node's, and an unused one.
    Getcpu(unsafe extern "C" fn(*mut u32, *mut u32, *mut c_void) -> i32),
}

/// The function of an image that answers each call, as
/// [`Vdso::functions`](super::vdso::Vdso::functions) returns it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Functions {
    /// time, or a clock_gettime that answers it when called with [`ClockId::REALTIME_COARSE`].
    pub time: Option<VdsoFn>,
    /// gettimeofday, or a clock_gettime that answers it when called with [`ClockId::REALTIME`].
    pub gettimeofday: Option<VdsoFn>,
    /// clock_gettime.
    pub clock_gettime: Option<VdsoFn>,
    /// clock_getres.
    pub clock_getres: Option<VdsoFn>,
    /// getcpu.
    pub getcpu: Option<VdsoFn>,
}

impl Functions {
    /// Finds the functions in an image that lies in memory, and none in one of another
    /// architecture.
    pub(super) fn of(image: &Image<'_>) -> Self {
        let Some(abi) = NATIVE else {
            return Self::default();
        };
        if !is_called(abi, image) {
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
    /// Returns the pointer to the code of a symbol. Whoever calls the pointer promises that the
    /// code has the signature that the table names.
    #[allow(
        clippy::missing_transmute_annotations,
        reason = "each variant states its type"
    )]
    fn of(Choice { candidate, address }: Choice) -> Option<Self> {
        let code = NonNull::new(ptr::with_exposed_provenance_mut::<()>(address))?;
        macro_rules! typed {
            ($($Shape:ident),+) => {
                match candidate.shape {
                    // SAFETY: it is not null, so it is a function pointer.
                    $(Shape::$Shape => Self::$Shape(unsafe { mem::transmute(code) }),)+
                    Shape::Timeval32 => return None, // no candidate has it
                }
            };
        }
        Some(typed!(Timespec64, Timespec32, Timeval64, Time64, Getcpu))
    }
}
