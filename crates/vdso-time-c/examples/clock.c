/*
 * Reads every clock with vdso-time between two reads with libc, and fails if its time is not
 * between their times.
 */

#define _GNU_SOURCE
#include <stdio.h>
#include <sched.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <vdso_time.h>
#include <vdso_time_counter.h>

_Static_assert(sizeof(struct vdso_timespec) == 16 && sizeof(struct vdso_timeval) == 16, "64 bits each");

static int failed;

static void check(const char *what, int64_t before, int64_t value, int64_t after)
{
    int is_between = before <= value && value <= after;
    printf("%-16s %20lld%s\n", what, (long long)value, is_between ? "" : "  WRONG");
    failed |= !is_between;
}

static int64_t by_libc(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t by_vdso_time(clockid_t clock)
{
    struct vdso_timespec now;
    int error = vdso_time_clock_gettime(clock, &now);
    return error ? error : now.tv_sec * 1000000000 + now.tv_nsec;
}

static void check_clock(const char *name, clockid_t clock)
{
    struct timespec expected;
    struct vdso_timespec resolution = {-1, -1};
    int64_t before = by_libc(clock), now = by_vdso_time(clock);
    check(name, before, now, by_libc(clock));
    clock_getres(clock, &expected);
    vdso_time_clock_getres(clock, &resolution);
    check("  resolution", expected.tv_nsec, resolution.tv_nsec, expected.tv_nsec);
}

int main(void)
{
    check_clock("realtime", CLOCK_REALTIME);
    check_clock("monotonic", CLOCK_MONOTONIC);
    check_clock("monotonic coarse", CLOCK_MONOTONIC_COARSE);
    check_clock("boottime", CLOCK_BOOTTIME);
    check_clock("thread CPU time", CLOCK_THREAD_CPUTIME_ID);
    check("unknown clock", -22, vdso_time_clock_gettime(99, NULL), -22);

    struct timeval before, after;
    struct vdso_timeval now;
    gettimeofday(&before, NULL);
    vdso_time_gettimeofday(&now);
    gettimeofday(&after, NULL);
#define MICROSECONDS(time) ((int64_t)(time).tv_sec * 1000000 + (time).tv_usec)
    check("gettimeofday", MICROSECONDS(before), MICROSECONDS(now), MICROSECONDS(after));
    /* Both change with the timer tick. */
    int64_t second = by_libc(CLOCK_REALTIME_COARSE) / 1000000000, same = vdso_time_time();
    check("time", second, same, by_libc(CLOCK_REALTIME_COARSE) / 1000000000);

    check("is it fast", 0, vdso_time_is_fast(CLOCK_MONOTONIC), 1);
    check("no clock is fast", 0, vdso_time_is_fast(99), 0);
    check("cost of no clock", VDSO_TIME_COST_UNKNOWN, vdso_time_read_cost(99), VDSO_TIME_COST_UNKNOWN);
    check("cost of CPU time", VDSO_TIME_COST_SYSTEM_CALL, vdso_time_read_cost(CLOCK_PROCESS_CPUTIME_ID),
          VDSO_TIME_COST_SYSTEM_CALL);
    char why[256], cut[8];
    check("no clock is explained", VDSO_TIME_CAUSE_REFUSED, vdso_time_explain(99, why, sizeof why),
          VDSO_TIME_CAUSE_REFUSED);
    check("a sentence ends", '.', why[strlen(why) - 1], '.');
    check("a text may be discarded", VDSO_TIME_CAUSE_REFUSED, vdso_time_explain(99, NULL, 0), VDSO_TIME_CAUSE_REFUSED);
    vdso_time_explain(99, cut, sizeof cut);
    check("a text is cut", 7, strlen(cut), 7);

    /* The thread stays on one CPU. */
    cpu_set_t one;
    unsigned cpu = -1, node = -1;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) {
        vdso_time_getcpu(&cpu, &node);
        check("CPU", sched_getcpu(), cpu, sched_getcpu());
    }

    /* Two clocks are compared, so the time may be off by the error bound. */
    uint64_t ticks;
    enum vdso_time_counter_status foretold = vdso_time_counter_check();
    struct vdso_time_counter_state state;
    int64_t start = by_libc(CLOCK_MONOTONIC), counted;
    do {
        counted = vdso_time_counter_monotonic();
        vdso_time_counter_get_state(&state);
    } while (state.status == VDSO_TIME_COUNTER_STATUS_CALIBRATING);
    if (state.status == VDSO_TIME_COUNTER_STATUS_USED)
        check("its use was foretold", VDSO_TIME_COUNTER_STATUS_USED, foretold, VDSO_TIME_COUNTER_STATUS_USED);
    int64_t bound = state.error_bound + 1000000;
    check("counter", start - bound, counted, by_libc(CLOCK_MONOTONIC) + bound);
    start = by_libc(CLOCK_REALTIME);
    counted = vdso_time_counter_realtime();
    check("  realtime", start - bound, counted, by_libc(CLOCK_REALTIME) + bound);
    start = by_libc(CLOCK_MONOTONIC);
    check("  ticks", 0, vdso_time_counter_ticks(&ticks), 0);
    counted = vdso_time_counter_ticks_to_monotonic(ticks);
    if (counted != -11)
        check("  of ticks", start - bound, counted, by_libc(CLOCK_MONOTONIC) + bound);
    printf("counter: status %u, error bound %llu ns\n", (unsigned)state.status,
           (unsigned long long)state.error_bound);

    /* The status that the function returns is still the status, unless a segment has ended since. */
    enum vdso_time_counter_status prepared = vdso_time_counter_forbid_system_calls();
    vdso_time_counter_get_state(&state);
    if (prepared > VDSO_TIME_COUNTER_STATUS_UPDATING)
        check("  in a sandbox", prepared, state.status, prepared);
    else
        check("  in a sandbox", 0, state.status, VDSO_TIME_COUNTER_STATUS_UPDATING);

    const void *base;
    size_t size;
    int error = vdso_time_locate(&base, &size);
    printf("vDSO: %d, %zu bytes\n", error, error ? 0 : size);
    char routes[1000];
    check("text", vdso_time_routes(NULL, 0), vdso_time_routes(routes, sizeof routes), sizeof routes - 1);
    puts(routes);
    return failed;
}
