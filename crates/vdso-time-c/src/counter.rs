//! The clock on the CPU's counter.

use core::ffi::c_int;

use vdso_time::Errno;
use vdso_time_counter::{
    self as counter, CounterMonotonic, CounterRealtime, State, Status, Ticks, Unavailable,
};

use crate::{negative, store};

/// Whether the CPU's counter answers, or why the vDSO does.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum vdso_time_counter_status {
    /// The counter answers.
    Used = 0,
    /// The counter's rate is being measured. This takes at least 11 ms from the first read, and
    /// starts again if two reads are more than a second apart.
    Calibrating = 1,
    /// No read came in time to update the clock, which needs an update every 8 to 16 ms. The vDSO
    /// answers until two reads come within 1 ms.
    Stale = 2,
    /// Another caller is updating the clock. If this status never ends, the update was cut off, by
    /// a signal handler that called siglongjmp(3), by a cancelled thread or by a fork. The
    /// beginning of vdso_time_counter.h describes these cases.
    Updating = 3,
    /// The vDSO reads no counter that a program can read.
    NoCounter = 4,
    /// The kernel derives its time from another clock source.
    ClockSource = 5,
    /// The kernel's clock source cannot be read in /sys.
    ClockSourceUnknown = 6,
    /// The counter's rate depends on the CPU's frequency.
    NotInvariant = 7,
    /// The thread is not allowed to read the counter (PR_SET_TSC).
    Denied = 8,
    /// The counter's rate is not the one that the hardware states.
    Frequency = 9,
    /// The clock would have to ask the kernel for its clock source, but
    /// vdso_time_counter_forbid_system_calls() has forbidden the system calls for that.
    SystemCallsForbidden = 10,
    /// A read through the vDSO takes about as long as a system call.
    SlowVdso = 11,
    /// Another reason.
    Other = 12,
}

/// The state of the counter clock at one moment.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct vdso_time_counter_state {
    /// How far vdso_time_counter_monotonic() can be from CLOCK_MONOTONIC, in nanoseconds.
    /// UINT64_MAX if a sandbox denies the clock.
    ///
    /// The bound holds until the clock is updated next, at most 16 ms later. It does not hold if,
    /// in that time or in the 16 ms before, the kernel's clock steps, its rate changes by more than
    /// 500 ppm, the counters of the CPUs differ, or the virtual machine is moved. The tables of
    /// crates/vdso-time-counter/src/guarantees.md say how far off a read can be then.
    pub error_bound: u64,
    /// The number of ticks per second, or 0 while it is not known.
    pub frequency: u64,
    /// An enum vdso_time_counter_status. Later versions can add values.
    pub status: u32,
    /// Always 0.
    pub reserved: u32,
}

/// Returns the nanoseconds of CLOCK_MONOTONIC, read from the CPU's counter, or a negative error.
/// The time is not earlier than a time that any thread read before. The beginning of
/// vdso_time_counter.h lists the exceptions.
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_counter_monotonic() -> i64 {
    match CounterMonotonic::try_now() {
        Ok(now) => now.as_nanos(),
        Err(error) => negative(error).into(),
    }
}

/// Returns the nanoseconds since the Epoch, read from the CPU's counter, or a negative error. The
/// time is not earlier than a time that any thread read before, unless CLOCK_REALTIME was set back.
/// The exceptions for vdso_time_counter_monotonic() apply here as well.
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_counter_realtime() -> i64 {
    let now = match CounterRealtime::try_now() {
        Ok(now) => now,
        Err(error) => return negative(error).into(),
    };
    match i64::try_from(now.as_nanos()) {
        Ok(nanos) => nanos,
        Err(_) => negative(Errno::EOVERFLOW).into(),
    }
}

/// Gets the counter's value. The CPU may read the counter before it has finished earlier
/// instructions.
///
/// On x86, x86_64, aarch64, riscv64, s390x and loongarch64 the value is always the counter's, even
/// if the clock does not use the counter. Then the value cannot be converted, so call this function
/// only if vdso_time_counter_check() returns VDSO_TIME_COUNTER_STATUS_USED. A thread that is not
/// allowed to read the counter (PR_SET_TSC, seccomp's strict mode) gets SIGSEGV.
///
/// On arm and on the remaining architectures the value is the nanoseconds of CLOCK_MONOTONIC, which
/// the vDSO returns if the clock does not use the counter. There the value can always be converted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_counter_ticks(ticks: *mut u64) -> c_int {
    // SAFETY: the caller passes null or an address to write to.
    unsafe { store(Ticks::try_read().map(Ticks::as_raw), ticks) }
}

/// Converts a value of the counter to the nanoseconds of CLOCK_MONOTONIC. Returns -EAGAIN if the
/// counter's rate is not known yet, or if the clock does not use the counter. A value from before
/// the rate was known can be converted afterwards. A value from before the clock's zero gives 0. A
/// value from before a reboot, a suspend or a move of the virtual machine gives a wrong time.
///
/// A value from after the last update of the clock, which was 8 to 16 ms ago at most, is converted
/// as exactly as vdso_time_counter_monotonic() reads the clock. An older value is converted with
/// the mean rate of the counter since it was measured. For each second of the value's age, the
/// error is usually below 0.1 us, and at most 1 ms if NTP changes the rate. If adjtimex(2) changes
/// the rate by more than NTP does, the error is up to 20 % of the time between the value and the
/// change. Sort the values and not the times, because values that are converted at different
/// moments have different errors.
///
/// The conversion of an older value reads the clock, with the same effects as
/// vdso_time_counter_monotonic().
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_counter_ticks_to_monotonic(ticks: u64) -> i64 {
    match Ticks::from_raw(ticks).monotonic() {
        Some(time) => time.as_nanos(),
        None => negative(Errno::EAGAIN).into(),
    }
}

/// Stores in `*state` whether the clock uses the counter, and how accurate the clock is. It cannot
/// fail, so it always returns 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_time_counter_get_state(state: *mut vdso_time_counter_state) -> c_int {
    let State {
        status,
        error_bound,
        frequency,
        ..
    } = counter::state();
    let seen = vdso_time_counter_state {
        error_bound: u64::try_from(error_bound.as_nanos()).unwrap_or(u64::MAX),
        frequency: frequency.unwrap_or(0),
        status: status_of(status) as u32,
        reserved: 0,
    };
    // SAFETY: the caller passes null or an address to write to.
    unsafe { store(Ok(seen), state) }
}

/// Checks whether this process will use the counter, without waiting until the counter's rate is
/// measured. Returns VDSO_TIME_COUNTER_STATUS_USED, or the reason why the vDSO will answer instead.
///
/// This function makes the system calls of a first read, which the beginning of vdso_time_counter.h
/// lists. Call it once, before the first read and before the program enters a sandbox. It cannot
/// predict VDSO_TIME_COUNTER_STATUS_FREQUENCY, which only a measurement finds. After
/// vdso_time_counter_forbid_system_calls() it makes no system call, and returns what is known.
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_counter_check() -> vdso_time_counter_status {
    match counter::check() {
        Ok(()) => vdso_time_counter_status::Used,
        Err(why) => status_of(Status::Unavailable(why)),
    }
}

/// Makes the clock trust the hypervisor for the rest of the process's life. Under kvm-clock, the
/// counter is then used even if the CPU does not state that the counter is invariant, as long as
/// the hypervisor states that the counters of all CPUs agree. The section "Events that make a read
/// wrong" of crates/vdso-time-counter/src/guarantees.md says how far a read can be off after the
/// virtual machine was moved.
///
/// Returns -EBUSY and changes nothing if the clock was read before. Call it before other threads
/// read the clock: if another thread's first read is under way, the call can succeed and take
/// effect up to 10 s later.
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_counter_trust_hypervisor() -> c_int {
    match counter::trust_hypervisor() {
        Ok(()) => 0,
        Err(error) => negative(error),
    }
}

/// Forbids the clock's system calls for the rest of the process's life. Before that, this function
/// calls vdso_time_warm_up(), and reads the clock until the counter's rate is known, for at most 50
/// ms. Call this function before the program enters a sandbox. If another thread is reading the
/// clock, the call is safe, but that read may still make system calls.
///
/// Returns the status with which the program enters the sandbox, as vdso_time_counter_get_state()
/// does. VDSO_TIME_COUNTER_STATUS_CALIBRATING means that the counter's rate is not known yet,
/// usually because 50 ms were not enough. Later reads then go on with the measurement. A second
/// call changes nothing and returns the present status.
#[unsafe(no_mangle)]
pub extern "C" fn vdso_time_counter_forbid_system_calls() -> vdso_time_counter_status {
    status_of(counter::prepare_for_sandbox())
}

fn status_of(status: Status) -> vdso_time_counter_status {
    match status {
        Status::Used => vdso_time_counter_status::Used,
        Status::Calibrating => vdso_time_counter_status::Calibrating,
        Status::Stale => vdso_time_counter_status::Stale,
        Status::Updating => vdso_time_counter_status::Updating,
        Status::Unavailable(Unavailable::NoCounter) => vdso_time_counter_status::NoCounter,
        Status::Unavailable(Unavailable::ClockSource) => vdso_time_counter_status::ClockSource,
        Status::Unavailable(Unavailable::NotInvariant) => vdso_time_counter_status::NotInvariant,
        Status::Unavailable(Unavailable::Denied) => vdso_time_counter_status::Denied,
        Status::Unavailable(Unavailable::Frequency) => vdso_time_counter_status::Frequency,
        Status::Unavailable(Unavailable::SystemCallsForbidden) => {
            vdso_time_counter_status::SystemCallsForbidden
        }
        Status::Unavailable(Unavailable::SlowVdso) => vdso_time_counter_status::SlowVdso,
        Status::Unavailable(Unavailable::ClockSourceUnknown) => {
            vdso_time_counter_status::ClockSourceUnknown
        }
        _ => vdso_time_counter_status::Other,
    }
}
