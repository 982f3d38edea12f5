/*
 * Runs with examples/preload.c in LD_PRELOAD. Checks that its clocks do not go back, and that they
 * are within a millisecond of the kernel's clocks, which this program reads with system calls.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MILLI 1000000LL

static long long nanos(struct timespec time) { return time.tv_sec * 1000000000LL + time.tv_nsec; }

static long long kernel(clockid_t clock) {
  struct timespec now;
  syscall(SYS_clock_gettime, clock, &now);
  return nanos(now);
}

static int fail(const char *what, long long by) {
  printf("%s: %lld\n", what, by);
  return 1;
}

static int follows(clockid_t clock) {
  long long last = 0, end = kernel(CLOCK_MONOTONIC) + 50 * MILLI;
  while (kernel(CLOCK_MONOTONIC) < end) {
    struct timespec now;
    long long before = kernel(clock), after;
    if (clock_gettime(clock, &now) != 0)
      return fail("errno", errno);
    after = kernel(clock);
    if (nanos(now) < before - MILLI || nanos(now) > after + MILLI)
      return fail("off by", nanos(now) - before);
    if (nanos(now) < last)
      return fail("back by", last - nanos(now));
    last = nanos(now);
  }
  return 0;
}

int main(void) {
  struct timespec now;
  struct timeval day, *volatile no_time = NULL;
  Dl_info library;
  if (dladdr(dlsym(RTLD_DEFAULT, "clock_gettime"), &library) == 0 ||
      strstr(library.dli_fname, "preload.so") == NULL)
    return fail("libc answers", 0);
  if (follows(CLOCK_MONOTONIC) || follows(CLOCK_REALTIME) || follows(CLOCK_BOOTTIME))
    return 1;
  if (clock_gettime(12345, &now) != -1 || errno != EINVAL)
    return fail("clock 12345", errno);
  if (gettimeofday(no_time, NULL) != 0 || gettimeofday(&day, NULL) != 0 ||
      kernel(CLOCK_REALTIME) / 1000 - (day.tv_sec * 1000000LL + day.tv_usec) > 1000000)
    return fail("gettimeofday", day.tv_sec);
  return 0;
}
