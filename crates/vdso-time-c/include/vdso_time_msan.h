/*
 * vdso_time.h and vdso_time_counter.h include this header if clang compiles with -fsanitize=memory.
 *
 * The library is not instrumented, so MemorySanitizer does not see what the library stores, and
 * would report the stored bytes as uninitialised. To prevent that, each function below calls a
 * function of the library, and then marks the bytes that the library has stored as initialised. MIT
 * or Apache-2.0.
 */

#include <sanitizer/msan_interface.h>

#ifndef VDSO_TIME_STORED
#define VDSO_TIME_STORED(is_stored, result)        \
  do {                                             \
    if ((is_stored) && (result))                   \
      __msan_unpoison((result), sizeof *(result)); \
  } while (0)
#define VDSO_TIME_MSAN static __inline__ __attribute__((unused))
#endif

#if defined(VDSO_TIME_H) && !defined(VDSO_TIME_MSAN_H)
#define VDSO_TIME_MSAN_H

VDSO_TIME_MSAN int vdso_time_msan_gettimeofday(struct vdso_timeval *now)
{
  int error = vdso_time_gettimeofday(now);
  VDSO_TIME_STORED(!error, now);
  return error;
}
#define vdso_time_gettimeofday vdso_time_msan_gettimeofday

VDSO_TIME_MSAN int vdso_time_msan_clock_gettime(int32_t clock, struct vdso_timespec *now)
{
  int error = vdso_time_clock_gettime(clock, now);
  VDSO_TIME_STORED(!error, now);
  return error;
}
#define vdso_time_clock_gettime vdso_time_msan_clock_gettime

VDSO_TIME_MSAN int vdso_time_msan_clock_getres(int32_t clock, struct vdso_timespec *resolution)
{
  int error = vdso_time_clock_getres(clock, resolution);
  VDSO_TIME_STORED(!error, resolution);
  return error;
}
#define vdso_time_clock_getres vdso_time_msan_clock_getres

VDSO_TIME_MSAN int vdso_time_msan_getcpu(unsigned int *cpu, unsigned int *node)
{
  int error = vdso_time_getcpu(cpu, node);
  VDSO_TIME_STORED(!error, cpu);
  VDSO_TIME_STORED(!error, node);
  return error;
}
#define vdso_time_getcpu vdso_time_msan_getcpu

VDSO_TIME_MSAN int vdso_time_msan_locate(const void **base, size_t *size)
{
  int error = vdso_time_locate(base, size);
  VDSO_TIME_STORED(!error, base);
  VDSO_TIME_STORED(!error, size);
  return error;
}
#define vdso_time_locate vdso_time_msan_locate

VDSO_TIME_MSAN size_t vdso_time_msan_routes(char *text, size_t size)
{
  size_t length = vdso_time_routes(text, size);
  if (text)
    __msan_unpoison(text, length < size ? length + 1 : size);
  return length;
}
#define vdso_time_routes vdso_time_msan_routes

VDSO_TIME_MSAN enum vdso_time_cause vdso_time_msan_explain(int32_t clock, char *text, size_t size)
{
  enum vdso_time_cause cause = vdso_time_explain(clock, text, size);
  if (text && size)
    __msan_unpoison_string(text);
  return cause;
}
#define vdso_time_explain vdso_time_msan_explain

#endif

#if defined(VDSO_TIME_COUNTER_H) && !defined(VDSO_TIME_COUNTER_MSAN_H)
#define VDSO_TIME_COUNTER_MSAN_H

VDSO_TIME_MSAN int vdso_time_msan_counter_ticks(uint64_t *ticks)
{
  int error = vdso_time_counter_ticks(ticks);
  VDSO_TIME_STORED(!error, ticks);
  return error;
}
#define vdso_time_counter_ticks vdso_time_msan_counter_ticks

VDSO_TIME_MSAN int vdso_time_msan_counter_get_state(struct vdso_time_counter_state *state)
{
  int error = vdso_time_counter_get_state(state);
  VDSO_TIME_STORED(!error, state);
  return error;
}
#define vdso_time_counter_get_state vdso_time_msan_counter_get_state

#endif
