/*
 * vdso-time: reads the Linux clock for the price of a function call.
 *
 * The functions find the kernel's vDSO and call it. If the vDSO cannot answer, they make the system
 * call.
 *
 * Errors: a function returns 0, or a negative error number, in which case it stores nothing, unless
 * its comment says otherwise. No function changes errno. -EINVAL the kernel does not know the clock
 * -EPERM usually: a sandbox denies the system call, with an error of its choice -ENOSYS the kernel
 * does not have the system call -EOVERFLOW it is after January 2038, and only 32-bit system calls
 * answer: in a 32-bit program before Linux 5.1, on Android, or in a sandbox that denies the 64-bit
 * ones
 *
 * Pointers: NULL discards a result. Any other pointer must be aligned for its type and valid for
 * the write: an invalid pointer crashes the program, and does not return -EFAULT.
 *
 * Threads and signals: any thread and any signal handler may call any function at any time, even in
 * the child of fork(2) and before main(). The library takes no lock, allocates nothing, and runs
 * nothing before main(). No function is a cancellation point.
 *
 * The exception is a caller without libc's thread-local storage, which getauxval(3) and errno need:
 * an IFUNC resolver of a static glibc program, which runs before that storage exists, and a thread
 * that clone(2) made without it. If such a caller makes the first call of the process, it crashes,
 * unless it has called vdso_time_set_address() before, or the library is built without the feature
 * libc. For a thread, a call of vdso_time_warm_up() in main() is enough.
 *
 * The stack: a caller has to align it as the ABI of its architecture says, as C compilers do. On
 * i386 that is 16 bytes at a call. The functions use SSE there, so a caller that aligns it to 4
 * bytes (Free Pascal, Wine, objects of old compilers) ends with SIGSEGV. It has to align the stack
 * first, as GCC's attribute force_align_arg_pointer does.
 *
 * Sandboxes: the first call makes the system call rt_sigprocmask(2), and without the feature libc
 * also prctl(2), or openat(2), read(2) and close(2). Call vdso_time_warm_up() before the program
 * enters a sandbox.
 *
 * Times have 64 bits on every architecture. On 64-bit ones struct vdso_timespec has the layout of
 * libc's struct timespec. On 32-bit architectures the layout differs: libc's tv_nsec has 32 bits,
 * and its tv_sec can have 32. There, copy the members instead of casting the pointer.
 *
 * The library also has the functions of vdso_time_counter.h and of the kernel's parse_vdso.c. A
 * program that uses the latter declares them itself.
 *
 * Made by cbindgen from crates/vdso-time-c. MIT or Apache-2.0.
 */

#ifndef VDSO_TIME_H
#define VDSO_TIME_H

#include <stddef.h>
#include <stdint.h>

/**
 * The cost of a read of a clock.
 */
enum vdso_time_cost {
  /**
   * The measurement is inconclusive, or the clock cannot be read or does not exist.
   */
  VDSO_TIME_COST_UNKNOWN = 0,
  /**
   * At most two thirds of a system call: the vDSO reads the clock in user space.
   */
  VDSO_TIME_COST_FUNCTION_CALL = 1,
  /**
   * About as much as a system call.
   */
  VDSO_TIME_COST_SYSTEM_CALL = 2
};

/**
 * Why a read of a clock costs what it costs. The text of vdso_time_explain() says what to do.
 */
enum vdso_time_cause {
  /**
   * The vDSO answers in user space.
   */
  VDSO_TIME_CAUSE_FINE = 0,
  /**
   * A measurement was disturbed.
   */
  VDSO_TIME_CAUSE_CANNOT_TELL = 1,
  /**
   * The process has no vDSO.
   */
  VDSO_TIME_CAUSE_NO_VDSO = 2,
  /**
   * The kernel found no timer that user space can read (arm).
   */
  VDSO_TIME_CAUSE_BLANKED_NAMES = 3,
  /**
   * The vDSO's function is missing, or must not be called.
   */
  VDSO_TIME_CAUSE_NO_FUNCTION = 4,
  /**
   * The kernel has no such clock, or a sandbox denies it.
   */
  VDSO_TIME_CAUSE_REFUSED = 5,
  /**
   * No vDSO answers for this clock, or this kernel's does not.
   */
  VDSO_TIME_CAUSE_CLOCK_NOT_SERVED = 6,
  /**
   * The vDSO cannot read the kernel's clock source.
   */
  VDSO_TIME_CAUSE_CLOCK_SOURCE = 7,
  /**
   * The kernel does not trust the CPU's counter.
   */
  VDSO_TIME_CAUSE_COUNTER_DISTRUSTED = 8,
  /**
   * The clock source does not explain the system call.
   */
  VDSO_TIME_CAUSE_UNEXPLAINED = 9
};

/**
 * Seconds and microseconds, 16 bytes on every architecture.
 */
struct vdso_timeval {
  /**
   * Seconds.
   */
  int64_t tv_sec;
  /**
   * Microseconds, 0 to 999999.
   */
  int64_t tv_usec;
};

/**
 * Seconds and nanoseconds: the kernel's struct __kernel_timespec, 16 bytes on every architecture.
 */
struct vdso_timespec {
  /**
   * Seconds.
   */
  int64_t tv_sec;
  /**
   * Nanoseconds, 0 to 999999999.
   */
  int64_t tv_nsec;
};

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Returns the seconds since the Epoch, or a negative error. Like time(2), it changes with the
 * timer tick, up to 10 ms after the second of CLOCK_REALTIME.
 */
int64_t vdso_time_time(void);

/**
 * Gets the time since the Epoch: gettimeofday(2), without its time zone.
 */
int vdso_time_gettimeofday(struct vdso_timeval *now);

/**
 * Gets the time of a clock: clock_gettime(2). `clock` is a CLOCK_ constant of time.h.
 */
int vdso_time_clock_gettime(int32_t clock, struct vdso_timespec *now);

/**
 * Gets the resolution of a clock: clock_getres(2).
 */
int vdso_time_clock_getres(int32_t clock, struct vdso_timespec *resolution);

/**
 * Gets the CPU and the NUMA node of the calling thread: getcpu(2). When the function returns, the
 * thread might already run on another CPU.
 */
int vdso_time_getcpu(unsigned int *cpu, unsigned int *node);

/**
 * Returns 1 if a read of a clock with vdso_time_clock_gettime() was measured to cost at most two
 * thirds of a system call. Returns 0 otherwise, even if the cost is unknown or the clock does not
 * exist.
 *
 * vdso_time_read_cost() makes the same measurement, and distinguishes these cases.
 */
int vdso_time_is_fast(int32_t clock);

/**
 * Measures what a read of a clock with vdso_time_clock_gettime() costs.
 *
 * VDSO_TIME_COST_SYSTEM_CALL is right for CPU-time clocks. For another clock it usually means that
 * the vDSO cannot read the kernel's clock source, such as hpet. A program can warn about that,
 * because vdso_time_routes() names the vDSO even then. The answer holds for this moment, and an
 * interrupt can mislead the measurement. The program vdso-doctor proves it.
 *
 * It makes at most 16 system calls clock_gettime(2). Call it before the program enters a sandbox
 * that kills for them. In a sandbox that denies them with an error, the cost is unknown.
 */
enum vdso_time_cost vdso_time_read_cost(int32_t clock);

/**
 * Explains what a read of a clock with vdso_time_clock_gettime() costs, and writes a text for a
 * log: why, and what to do. The text has at most `size` bytes with the final NUL; 256 are enough.
 *
 * It replaces a list of names of clock sources, because the cost is measured and the name only
 * explains it. It makes at most 32 system calls clock_gettime(2), and opens two files of /sys if
 * reads enter the kernel. Call it before a sandbox.
 */
enum vdso_time_cause vdso_time_explain(int32_t clock, char *text, size_t size);

/**
 * Finds the vDSO and its functions, as the first call of any function does. Call it before a
 * sandbox.
 */
void vdso_time_warm_up(void);

/**
 * Sets the address of the vDSO, for a caller without libc, or earlier than libc's thread-local
 * storage. It is the value of AT_SYSINFO_EHDR in the auxiliary vector, or NULL if that has none.
 *
 * -EBUSY: it is set already, or another function was called before. Then nothing changes.
 */
int vdso_time_set_address(const void *ehdr);

/**
 * Finds the image of the vDSO, which stays until the process ends. It must not be written to.
 *
 * -ENOENT: the process has no vDSO. -EFAULT: it was unmapped. -EPERM: a sandbox denied the check
 * of its address. -ENOEXEC: it is malformed. The clock functions work nevertheless.
 */
int vdso_time_locate(const void **base, size_t *size);

/**
 * Returns the address of a function of the vDSO, or NULL. Both arguments are strings. With a
 * version of NULL, any version matches. Each call searches the image, so keep the result.
 * vdso_sym() of parse_vdso.c takes the arguments in the opposite order.
 *
 * Functions of the vDSO return negative errors, except on powerpc, where they do not return like C
 * functions.
 */
void *vdso_time_symbol(const char *name, const char *version);

/**
 * Writes what answers each function, in one line each, and at most `size` bytes with the final
 * NUL. Returns the length of the whole text without the NUL, as snprintf(3) does.
 */
size_t vdso_time_routes(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif  /* VDSO_TIME_H */

#ifdef __has_feature
#if __has_feature(memory_sanitizer)
#include "vdso_time_msan.h"
#endif
#endif
