/*
 * vdso-time: reads the Linux clock for the price of a function call.
 *
 * The functions find the kernel's vDSO and call it. Where it cannot answer, they make the system
 * call. Unless it says otherwise, a function returns 0 or a negative error number: -EINVAL for an
 * unknown clock, mostly -EPERM if a sandbox denies the system call. None of them changes errno.
 *
 * Pointers: NULL discards a result. Any other pointer must be valid.
 *
 * Threads and signals: any thread and any signal handler may call any function at any time, also in
 * the child of fork(2). Nothing is locked, allocated, or run before main().
 *
 * Sandboxes: the first call makes the system call rt_sigprocmask(2). Call vdso_time_warm_up()
 * before a sandbox.
 *
 * Times have 64 bits on every architecture. On 64-bit ones struct vdso_timespec has the layout of
 * libc's struct timespec. On 32-bit ones it has not: libc's tv_nsec has 32 bits, and its tv_sec can
 * have 32. Copy the members there, do not cast the pointer.
 *
 * The library also has the functions of vdso_time_counter.h, and those of the kernel's
 * parse_vdso.c, for programs that declare them.
 *
 * Made by cbindgen from crates/vdso-time-c. MIT or Apache-2.0.
 */

#ifndef VDSO_TIME_H
#define VDSO_TIME_H

#include <stddef.h>
#include <stdint.h>

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
 * Gets the time since the Epoch: gettimeofday(2).
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
 * Gets the CPU and the NUMA node of the calling thread: getcpu(2).
 */
int vdso_time_getcpu(unsigned int *cpu, unsigned int *node);

/**
 * Finds the vDSO and its functions, as the first call of any function does. Call it before a
 * sandbox.
 */
void vdso_time_warm_up(void);

/**
 * Finds the image of the vDSO.
 *
 * -ENOENT: there is none. -EFAULT: it was unmapped. -EPERM: a sandbox denied the check of its
 * address. -ENOEXEC: it is malformed. The clock functions work nevertheless.
 */
int vdso_time_locate(const void **base, size_t *size);

/**
 * Returns the address of a function of the vDSO, or NULL. With a version of NULL, any version
 * matches. Each call searches the image, so keep the result. vdso_sym() of parse_vdso.c has the
 * arguments in the other order.
 *
 * Functions of the vDSO return negative errors, except on powerpc, where they are no C functions.
 */
void *vdso_time_symbol(const char *name, const char *version);

/**
 * Writes what answers each function, one line each, at most `size` bytes with the final
 * NUL. Returns the length of the whole text, as snprintf(3) does.
 */
size_t vdso_time_routes(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif  /* VDSO_TIME_H */
