// Times the clock functions of a C library, as benches/src/harness does.
//
// helper ROUNDS ROW...   prints lines of: row, spacing, contender, nanoseconds of a call
//
// LIBRARY is the name of the C library.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
        for (; calls; calls--) {                                                                   \
            __VA_ARGS__;                                                                           \
            FENCE();                                                                               \
        }                                                                                          \
    }                                                                                              \
    static void name##_back_to_back(unsigned long calls) {                                         \
        for (; calls; calls--) {                                                                   \
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
CONTENDER(seconds, KEEP(time(NULL)))
CONTENDER(monotonic, ASK(clock_gettime(CLOCK_MONOTONIC, &out)))
CONTENDER(coarse, ASK(clock_gettime(CLOCK_MONOTONIC_COARSE, &out)))
CONTENDER(resolution, ASK(clock_getres(CLOCK_MONOTONIC, &out)))

static const struct row {
    const char *name;
    const loop *loops;
} rows[] = {
    {"time()", seconds},
    {"clock_gettime(MONOTONIC)", monotonic},
    {"clock_gettime(MONOTONIC_COARSE)", coarse},
    {"clock_getres(MONOTONIC)", resolution},
};

// The nanoseconds of a call, in the fastest of as many batches of 50 us or more.
static double fastest(loop run, long batches) {
    double least = 1e18;
    for (unsigned long calls = 1; batches;) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        run(calls);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double nanos = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
        if (nanos < 50e3) {
            calls *= 2;
            continue;
        }
        batches--;
        if (nanos / calls < least) least = nanos / calls;
    }
    return least;
}

int main(int argc, char **argv) {
    static const char *const spacings[] = {"isolated", "back to back"};
    for (const struct row *row = rows; row < rows + sizeof rows / sizeof *rows; row++)
        for (int name = 2; name < argc; name++)
            for (int spacing = 0; spacing < 2 && !strcmp(argv[name], row->name); spacing++) {
                double fences = spacing ? 0 : fastest(nothing[0], atol(argv[1]));
                double nanos = fastest(row->loops[spacing], atol(argv[1])) - fences;
                printf("%s\t%s\t%s\t%f\n", row->name, spacings[spacing], LIBRARY, nanos);
            }
    return 0;
}
