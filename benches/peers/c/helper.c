// The clock functions of a C library, beside the vDSO's own through pointers, timed as benches/src/harness does it.
//
// helper ROUNDS OFFSETS ROW...   prints the nanoseconds of a call: row, spacing, contender
// helper step OFFSETS ROW        makes 2 and 4 calls of each contender between breakpoints
//
// OFFSETS are those of clock_gettime, gettimeofday, time, clock_getres and getcpu in the vDSO, with commas between them; 0 where it has
// none. LIBRARY is what the C library is called.

#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <time.h>

typedef int (*clock_fn)(clockid_t, struct timespec *);
typedef int (*gettimeofday_fn)(struct timeval *, void *);
typedef time_t (*time_fn)(time_t *);
typedef int (*getcpu_fn)(unsigned *, unsigned *, void *);

static clock_fn direct_clock_gettime, direct_clock_getres;
static gettimeofday_fn direct_gettimeofday;
static time_fn direct_time;
static getcpu_fn direct_getcpu;

// The clock of the row.
static clockid_t clock_of_row;

#define KEEP(value) __asm__ volatile("" : : "r"(value))
#ifdef __aarch64__
#define FENCE() __asm__ volatile("dsb sy\n\tisb" : : : "memory")
#define SKIP(place) __asm__ volatile(".rept " #place "*4\n\tnop\n\t.endr")
#else
#define FENCE() __asm__ volatile("lfence" : : : "memory")
#define SKIP(place) __asm__ volatile(".rept " #place "*16\n\tnop\n\t.endr")
#endif

// A loop, in a quarter of a cache line: what stands in `setup` is outside of it.
#define LOOP(name, place, between, setup, ...)                                                                     \
    __attribute__((noinline)) static void name(unsigned long calls) {                                             \
        setup;                                                                                                     \
        SKIP(place);                                                                                               \
        for (unsigned long at = 0; at < calls; at++) {                                                             \
            __VA_ARGS__;                                                                                           \
            between;                                                                                               \
        }                                                                                                          \
    }

#define NOTHING ((void)0)
#define CONTENDER(name, setup, ...)                                                                                \
    LOOP(name##_b0, 0, NOTHING, setup, __VA_ARGS__)                                                                \
    LOOP(name##_b1, 1, NOTHING, setup, __VA_ARGS__)                                                                \
    LOOP(name##_b2, 2, NOTHING, setup, __VA_ARGS__)                                                                \
    LOOP(name##_b3, 3, NOTHING, setup, __VA_ARGS__)                                                                \
    LOOP(name##_i0, 0, FENCE(), setup, __VA_ARGS__)                                                                \
    LOOP(name##_i1, 1, FENCE(), setup, __VA_ARGS__)                                                                \
    LOOP(name##_i2, 2, FENCE(), setup, __VA_ARGS__)                                                                \
    LOOP(name##_i3, 3, FENCE(), setup, __VA_ARGS__)                                                                \
    static const contender name = {                                                                                \
        {name##_b0, name##_b1, name##_b2, name##_b3},                                                              \
        {name##_i0, name##_i1, name##_i2, name##_i3},                                                              \
    };

typedef void (*loop)(unsigned long);
typedef loop contender[2][4];

#define CLOCK_CALL(read)                                                                                           \
    struct timespec place;                                                                                         \
    if (read(clock, &place) == 0) {                                                                                \
        KEEP(place.tv_sec);                                                                                        \
        KEEP(place.tv_nsec);                                                                                       \
    }
#define DAY_CALL(read)                                                                                             \
    struct timeval place;                                                                                          \
    if (read(&place, NULL) == 0) {                                                                                 \
        KEEP(place.tv_sec);                                                                                        \
        KEEP(place.tv_usec);                                                                                       \
    }
#define CPU_CALL(read)                                                                                             \
    unsigned cpu, node;                                                                                            \
    if (read == 0) {                                                                                               \
        KEEP(cpu);                                                                                                 \
        KEEP(node);                                                                                                \
    }

CONTENDER(nothing, NOTHING, __asm__ volatile(""))
CONTENDER(libc_gettime, clockid_t clock = clock_of_row, CLOCK_CALL(clock_gettime))
CONTENDER(direct_gettime, clockid_t clock = clock_of_row; clock_fn read = direct_clock_gettime, CLOCK_CALL(read))
CONTENDER(libc_getres, clockid_t clock = clock_of_row, CLOCK_CALL(clock_getres))
CONTENDER(direct_getres, clockid_t clock = clock_of_row; clock_fn read = direct_clock_getres, CLOCK_CALL(read))
CONTENDER(libc_day, NOTHING, DAY_CALL(gettimeofday))
CONTENDER(direct_day, gettimeofday_fn read = direct_gettimeofday, DAY_CALL(read))
CONTENDER(libc_time, NOTHING, KEEP(time(NULL)))
CONTENDER(direct_seconds, time_fn read = direct_time, KEEP(read(NULL)))
#ifdef __GLIBC__
CONTENDER(libc_cpu, NOTHING, CPU_CALL(getcpu(&cpu, &node)))
#else
// musl tells the CPU alone.
CONTENDER(libc_cpu, NOTHING, KEEP(sched_getcpu()))
#endif
CONTENDER(direct_cpu, getcpu_fn read = direct_getcpu, CPU_CALL(read(&cpu, &node, NULL)))

static const struct row {
    const char *name;
    clockid_t clock;
    const contender *libc, *direct;
    const void *function;
} rows[] = {
    {"time()", 0, &libc_time, &direct_seconds, &direct_time},
    {"gettimeofday()", 0, &libc_day, &direct_day, &direct_gettimeofday},
#define GETTIME(clock) {"clock_gettime(" #clock ")", CLOCK_##clock, &libc_gettime, &direct_gettime, &direct_clock_gettime}
    GETTIME(REALTIME),
    GETTIME(MONOTONIC),
    GETTIME(BOOTTIME),
    GETTIME(TAI),
    GETTIME(MONOTONIC_RAW),
    GETTIME(REALTIME_COARSE),
    GETTIME(MONOTONIC_COARSE),
    {"clock_gettime(THREAD_CPUTIME)", CLOCK_THREAD_CPUTIME_ID, &libc_gettime, &direct_gettime, &direct_clock_gettime},
    {"clock_getres(MONOTONIC)", CLOCK_MONOTONIC, &libc_getres, &direct_getres, &direct_clock_getres},
    {"getcpu()", 0, &libc_cpu, &direct_cpu, &direct_getcpu},
};

#define BATCH 50e3

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static double nanos(loop run, unsigned long calls) {
    double start = now();
    run(calls);
    return now() - start;
}

static unsigned long calls_of_batch(const contender *who, int isolated) {
    unsigned long calls = 1;
    for (int long_enough = 0; long_enough < 3;) {
        if (nanos((*who)[isolated][0], calls) >= BATCH) {
            long_enough++;
        } else {
            calls *= 2;
            long_enough = 0;
        }
    }
    return calls;
}

// The contenders of a row: the library, the vDSO, the vDSO again, nothing.
enum { WHO = 4 };

static void measure(const struct row *row, int isolated, long rounds) {
    const contender *who[WHO] = {row->libc, row->direct, row->direct, &nothing};
    static const char *const names[] = {LIBRARY, "direct (" LIBRARY ")", "direct again (" LIBRARY ")"};
    unsigned long calls[WHO];
    double fastest[WHO];
    for (int at = 0; at < WHO; at++) {
        calls[at] = calls_of_batch(who[at], isolated);
        fastest[at] = 1e18;
    }
    for (long round = 0; round < rounds; round++) {
        for (int turn = 0; turn < WHO; turn++) {
            int at = (round + turn) % WHO;
            double each = nanos((*who[at])[isolated][round / WHO % 4], calls[at]) / calls[at];
            if (each < fastest[at]) fastest[at] = each;
        }
    }
    for (int at = 0; at < WHO - 1; at++) {
        double each = fastest[at] - (isolated ? fastest[WHO - 1] : 0);
        printf("%s\t%s\t%s\t%.6f\n", row->name, isolated ? "isolated" : "back to back", names[at], each);
    }
}

static void breakpoint(void) {
#ifdef __x86_64__
    __asm__ volatile("int3");
#endif
}

__attribute__((noinline)) static void between_breakpoints(loop run, unsigned long calls) {
    breakpoint();
    run(calls);
    breakpoint();
}

static void step(const struct row *row) {
    const contender *who[] = {row->libc, row->direct};
    for (int at = 0; at < 2; at++) {
        (*who[at])[0][0](1);
        between_breakpoints((*who[at])[0][0], 2);
        between_breakpoints((*who[at])[0][0], 4);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    void *targets[] = {&direct_clock_gettime, &direct_gettimeofday, &direct_time, &direct_clock_getres, &direct_getcpu};
    uintptr_t base = getauxval(AT_SYSINFO_EHDR);
    char *offset = argv[2];
    for (int at = 0; at < 5; at++) {
        uintptr_t value = strtoul(offset, &offset, 0);
        if (*offset == ',') offset++;
        value = base && value ? base + value : 0;
        memcpy(targets[at], &value, sizeof value);
    }
    for (unsigned at = 0; at < sizeof rows / sizeof *rows; at++) {
        const struct row *row = &rows[at];
        int wanted = 0;
        for (int name = 3; name < argc; name++) wanted |= !strcmp(argv[name], row->name);
        if (!wanted || !*(const uintptr_t *)row->function) continue;
        clock_of_row = row->clock;
        if (!strcmp(argv[1], "step")) {
            step(row);
        } else {
            for (int isolated = 0; isolated < 2; isolated++) measure(row, isolated, atol(argv[1]));
        }
    }
    return 0;
}
