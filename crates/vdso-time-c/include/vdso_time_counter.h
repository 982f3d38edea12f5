/*
 * vdso-time's clock on the CPU's counter, which follows the kernel's clocks.
 *
 * The functions read the counter themselves. In the first 11 ms of reads, and where the counter
 * cannot be trusted, the vDSO answers. vdso_time_counter_get_state() says which of the two answers.
 *
 * What vdso_time.h says about errors, pointers, threads and signals holds for these functions as
 * well, with one exception. If an update of the clock is begun and never finished, the later reads
 * of the process are slower than the vDSO's, but the times stay right. Three things can cut an
 * update off: a signal handler that leaves it with siglongjmp(3), a thread that ends or is
 * cancelled asynchronously in it, and, for the child, a fork(2) by another thread. An update is
 * some 20 stores every 8 to 16 ms, so that is rare. If the program's handlers jump, block the signal
 * during a read, or use vdso_time.h.
 *
 * Sandboxes: the first read and one each 10 s make some system calls, until the program calls
 * vdso_time_counter_forbid_system_calls(). A thread that must not read the counter (PR_SET_TSC,
 * seccomp's strict mode) gets SIGSEGV, as it does in the vDSO.
 *
 * Made by cbindgen from crates/vdso-time-c. MIT or Apache-2.0.
 */

#ifndef VDSO_TIME_COUNTER_H
#define VDSO_TIME_COUNTER_H

#include <stdint.h>

/**
 * Whether the CPU's counter answers, or why the vDSO does.
 */
enum vdso_time_counter_status {
  /**
   * The counter answers.
   */
  VDSO_TIME_COUNTER_STATUS_USED = 0,
  /**
   * The counter's rate is being measured, which takes 11 ms of reads.
   */
  VDSO_TIME_COUNTER_STATUS_CALIBRATING = 1,
  /**
   * No read came in time to renew the segment. Two reads within 1 ms use the counter again.
   */
  VDSO_TIME_COUNTER_STATUS_STALE = 2,
  /**
   * Another caller is updating the clock. If the status stays, a signal handler that jumped, a
   * cancelled thread or a fork cut the update off.
   */
  VDSO_TIME_COUNTER_STATUS_UPDATING = 3,
  /**
   * The vDSO reads no counter that a program can read.
   */
  VDSO_TIME_COUNTER_STATUS_NO_COUNTER = 4,
  /**
   * The kernel derives its time from another clock source.
   */
  VDSO_TIME_COUNTER_STATUS_CLOCK_SOURCE = 5,
  /**
   * The kernel's clock source cannot be read in /sys.
   */
  VDSO_TIME_COUNTER_STATUS_CLOCK_SOURCE_UNKNOWN = 6,
  /**
   * The counter's rate depends on the CPU's frequency.
   */
  VDSO_TIME_COUNTER_STATUS_NOT_INVARIANT = 7,
  /**
   * The thread must not read the counter (PR_SET_TSC).
   */
  VDSO_TIME_COUNTER_STATUS_DENIED = 8,
  /**
   * The counter's rate is not the one that the hardware states.
   */
  VDSO_TIME_COUNTER_STATUS_FREQUENCY = 9,
  /**
   * vdso_time_counter_forbid_system_calls() forbids asking the kernel.
   */
  VDSO_TIME_COUNTER_STATUS_SYSTEM_CALLS_FORBIDDEN = 10,
  /**
   * A read through the vDSO takes about as long as a system call.
   */
  VDSO_TIME_COUNTER_STATUS_SLOW_VDSO = 11,
  /**
   * Another reason.
   */
  VDSO_TIME_COUNTER_STATUS_OTHER = 12
};

/**
 * The state of the counter's clock at one moment.
 */
struct vdso_time_counter_state {
  /**
   * How far vdso_time_counter_monotonic() can be from CLOCK_MONOTONIC, in nanoseconds.
   * UINT64_MAX if a sandbox denies the clock.
   */
  uint64_t error_bound;
  /**
   * The number of ticks per second, or 0 while it is not known.
   */
  uint64_t frequency;
  /**
   * An enum vdso_time_counter_status. Later versions can add values.
   */
  uint32_t status;
  /**
   * Always 0.
   */
  uint32_t reserved;
};

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Returns the nanoseconds of CLOCK_MONOTONIC from the CPU's counter, or a negative error. It is
 * not earlier than a time that any thread read before, with the exceptions that "Order" in the
 * documentation of vdso-time-counter lists.
 */
int64_t vdso_time_counter_monotonic(void);

/**
 * Returns the nanoseconds since the Epoch from the CPU's counter, or a negative error. It is
 * earlier than a time that any thread read before only if CLOCK_REALTIME went back.
 */
int64_t vdso_time_counter_realtime(void);

/**
 * Gets the counter's value. The CPU may read it before it has finished earlier instructions. On a
 * machine whose counter a program cannot read, the value is the nanoseconds of
 * vdso_time_counter_monotonic().
 */
int vdso_time_counter_ticks(uint64_t *ticks);

/**
 * Returns the nanoseconds of CLOCK_MONOTONIC at a value of the counter, or -EAGAIN: the counter is
 * not measured yet, or not used.
 */
int64_t vdso_time_counter_ticks_to_monotonic(uint64_t ticks);

/**
 * Gets whether the counter is used, and how accurate it is. Returns 0.
 */
int vdso_time_counter_get_state(struct vdso_time_counter_state *state);

/**
 * Checks whether the counter will be used in this process, before it is measured. It returns
 * VDSO_TIME_COUNTER_STATUS_USED, or the reason why the vDSO will answer. vdso_time_explain()
 * answers the same question for the vDSO.
 *
 * It makes system calls, which the documentation of the Rust crate vdso-time-counter lists. Call
 * it once, before the first read and before a sandbox. VDSO_TIME_COUNTER_STATUS_FREQUENCY is not
 * known before some reads.
 */
enum vdso_time_counter_status vdso_time_counter_check(void);

/**
 * Trusts the hypervisor's statement about the counter under kvm-clock, instead of the CPU's, for
 * the rest of the process's life. The documentation of the Rust function trust_hypervisor says how
 * wrong a read can be after a move of the machine.
 *
 * -EBUSY: the clock was read before. Then nothing changes.
 */
int vdso_time_counter_trust_hypervisor(void);

/**
 * Forbids the clock's system calls for the rest of the process's life. It first reads the clock
 * until the counter is measured, for at most 50 ms. Call it before a sandbox, when no other thread
 * reads the clock.
 */
void vdso_time_counter_forbid_system_calls(void);

#ifdef __cplusplus
}
#endif

#endif  /* VDSO_TIME_COUNTER_H */

#ifdef __has_feature
#if __has_feature(memory_sanitizer)
#include "vdso_time_msan.h"
#endif
#endif
