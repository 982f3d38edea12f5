/*
 * A library for LD_PRELOAD, which reads CLOCK_MONOTONIC and CLOCK_REALTIME from the CPU's counter.
 *
 *   cc -O2 -shared -fPIC -o preload.so preload.c -Wl,--exclude-libs,ALL \
 *       $(pkg-config --cflags --libs-only-L vdso_time) -l:libvdso_time.a
 *   LD_PRELOAD=./preload.so program
 *
 * It is for programs that call libc's clock_gettime() or gettimeofday(). It has no effect on a
 * program with a static libc, or on one that calls the vDSO itself, as Go programs do. In a 32-bit
 * program it replaces only the functions with 32-bit times: programs that were compiled with
 * _TIME_BITS=64 call others. The other clocks are read from the vDSO, as before.
 *
 * Do not preload it into a program that enters a sandbox. Every 10 s, a read calls prctl(2),
 * openat(2), read(2), close(2) and clock_gettime(2), and a sandbox that kills the process for one
 * of them ends the program.
 *
 * As libc's function does, this one waits for all earlier instructions before it reads the counter,
 * which is most of what a read costs. With -DUNORDERED it does not wait. Then the times of one
 * thread are still in order, but a time can be earlier than one that another thread read before.
 * examples/preload.sh measures what the library gains in PostgreSQL and Redis, with and without
 * -DUNORDERED.
 *
 * Nothing here may call libc's clock functions, because such a call would come back to these
 * functions, and never end.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/select.h> /* struct timeval */
#include <time.h>

#include <vdso_time.h>
#include <vdso_time_counter.h>

#define NANOS 1000000000

/* On 32 bits, 64-bit times have functions of other names, which this file does not replace. */
_Static_assert(sizeof(time_t) == sizeof(long),
               "compile without _TIME_BITS=64: gettimeofday() would overrun its buffer");

static int failed(int64_t error) {
  errno = (int)-error;
  return -1;
}

static int from_vdso(clockid_t clock, struct timespec *time) {
  struct vdso_timespec now;
  int error = vdso_time_clock_gettime(clock, &now);
  if (error != 0)
    return failed(error);
  time->tv_sec = now.tv_sec;
  time->tv_nsec = now.tv_nsec;
  return 0;
}

static int64_t monotonic(void) {
#ifdef UNORDERED
  uint64_t ticks;
  if (vdso_time_counter_ticks(&ticks) == 0) {
    int64_t now = vdso_time_counter_ticks_to_monotonic(ticks);
    if (now >= 0)
      return now;
  }
#endif
  return vdso_time_counter_monotonic();
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int64_t now;
  if (clock == CLOCK_MONOTONIC)
    now = monotonic();
  else if (clock == CLOCK_REALTIME)
    now = vdso_time_counter_realtime();
  else
    return from_vdso(clock, time);
  if (now < 0)
    return failed(now);
  time->tv_sec = now / NANOS;
  time->tv_nsec = now % NANOS;
  return 0;
}

/*
 * This file does not include sys/time.h, whose prototype says that `time` is not NULL: with it the
 * compiler would drop the check of `time`. Like libc's function, this one writes a time zone of 0.
 */
int gettimeofday(struct timeval *time, int zone[2]) {
  int64_t now = vdso_time_counter_realtime();
  if (now < 0)
    return failed(now);
  if (zone != NULL)
    zone[0] = zone[1] = 0;
  if (time != NULL) {
    time->tv_sec = now / NANOS;
    time->tv_usec = now % NANOS / 1000;
  }
  return 0;
}
