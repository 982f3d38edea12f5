// Times the clock functions of a C library and of the vDSO, as benches/src/harness does.
//
// helper ROUNDS OFFSETS ROW...   prints lines of: row, spacing, contender, nanoseconds of a call
//
// OFFSETS are those of clock_gettime, time and clock_getres in the vDSO, separated by commas; 0 if it
// has none. LIBRARY is the name of the C library.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

static int (*direct_gettime)(clockid_t, struct timespec *);
static int (*direct_getres)(clockid_t, struct timespec *);
static time_t (*direct_time)(time_t *);

static clockid_t clock_of_row;

#define KEEP(value) __asm__ volatile("" : : "r"(value))
#ifdef __aarch64__
#define FENCE() __asm__ volatile("dsb sy\n\tisb" : : : "memory")
#else
#define FENCE() __asm__ volatile("lfence" : : : "memory")
#endif

typedef void (*loop)(unsigned long calls);

// The loops of a contender: isolated, back to back.
#define CONTENDER(name, ...)                                                                       \
    static void name##_isolated(unsigned long calls) {                                             \
        for (clockid_t clock = clock_of_row; calls; calls--) {                                     \
            KEEP(clock);                                                                           \
            __VA_ARGS__;                                                                           \
            FENCE();                                                                               \
        }                                                                                          \
    }                                                                                              \
    static void name##_back_to_back(unsigned long calls) {                                         \
        for (clockid_t clock = clock_of_row; calls; calls--) {                                     \
            KEEP(clock);                                                                           \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    }                                                                                              \
    static const loop name[] = {name##_isolated, name##_back_to_back};

#define ASK(call)                                                                                  \
    struct timespec out;                                                                           \
    if (call == 0) {                                                                               \
        KEEP(out.tv_sec);                                                                          \
        KEEP(out.tv_nsec);                                                                         \
    }

CONTENDER(nothing, __asm__ volatile(""))
CONTENDER(libc_gettime, ASK(clock_gettime(clock, &out)))
CONTENDER(vdso_gettime, ASK(direct_gettime(clock, &out)))
CONTENDER(libc_getres, ASK(clock_getres(clock, &out)))
CONTENDER(vdso_getres, ASK(direct_getres(clock, &out)))
CONTENDER(libc_time, KEEP(time(NULL)))
CONTENDER(vdso_time, KEEP(direct_time(NULL)))

static const struct row {
    const char *name;
    clockid_t clock;
    const loop *libc, *direct;
    const void *function;
} rows[] = {
    {"time()", 0, libc_time, vdso_time, &direct_time},
    {"clock_gettime(MONOTONIC)", CLOCK_MONOTONIC, libc_gettime, vdso_gettime, &direct_gettime},
    {"clock_gettime(MONOTONIC_COARSE)", CLOCK_MONOTONIC_COARSE, libc_gettime, vdso_gettime, &direct_gettime},
    {"clock_getres(MONOTONIC)", CLOCK_MONOTONIC, libc_getres, vdso_getres, &direct_getres},
};

static double nanos(loop run, unsigned long calls) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    run(calls);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
}

static void measure(const struct row *row, int spacing, long rounds) {
    const loop who[] = {row->libc[spacing], row->direct[spacing], nothing[spacing]};
    unsigned long calls[] = {1, 1, 1};
    double fastest[] = {1e18, 1e18, 1e18};
    for (int at = 0; at < 3; at++)
        while (nanos(who[at], calls[at]) < 50e3) calls[at] *= 2;
    for (long turn = 0; turn < 3 * rounds; turn++) {
        double each = nanos(who[turn % 3], calls[turn % 3]) / calls[turn % 3];
        if (each < fastest[turn % 3]) fastest[turn % 3] = each;
    }
    static const char *const spacings[] = {"isolated", "back to back"}, *const names[] = {LIBRARY, "direct"};
    for (int at = 0; at < 2; at++)
        printf("%s\t%s\t%s\t%f\n", row->name, spacings[spacing], names[at], fastest[at] - (spacing ? 0 : fastest[2]));
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    void *targets[] = {&direct_gettime, &direct_time, &direct_getres};
    uintptr_t base = getauxval(AT_SYSINFO_EHDR);
    char *offset = argv[2];
    for (int at = 0; at < 3; at++, offset += *offset == ',') {
        uintptr_t value = strtoul(offset, &offset, 0);
        value = base && value ? base + value : 0;
        memcpy(targets[at], &value, sizeof value);
    }
    for (const struct row *row = rows; row < rows + sizeof rows / sizeof *rows; row++)
        for (int name = 3; name < argc; name++)
            if (!strcmp(argv[name], row->name) && *(const uintptr_t *)row->function)
                for (int spacing = 0; spacing < 2; spacing++) {
                    clock_of_row = row->clock;
                    measure(row, spacing, atol(argv[1]));
                }
    return 0;
}
