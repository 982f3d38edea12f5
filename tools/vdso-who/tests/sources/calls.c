// calls clock|other|both|cpu SECONDS: makes system calls for this much CPU time. The function
// `clocks` reads a clock and `others` does not; both pass the number of the call to syscall(2).
// `cpu` reads the thread's CPU time through clock_gettime(2), for which the vDSO makes a system
// call.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static void clocks(void) {
    struct timespec time;
    for (int i = 0; i < 1000; i++) syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
}

__attribute__((noinline)) static void others(void) {
    for (int i = 0; i < 1000; i++) syscall(SYS_getppid);
}

__attribute__((noinline)) static void cpu(void) {
    struct timespec time;
    for (int i = 0; i < 1000; i++) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
}

int main(int count, char **words) {
    clock_t end = (clock_t)(atof(words[2]) * CLOCKS_PER_SEC);
    while (count == 3 && clock() < end) {
        const char *mode = words[1];
        if (strcmp(mode, "cpu") == 0) cpu();
        if (strcmp(mode, "clock") == 0 || strcmp(mode, "both") == 0) clocks();
        if (strcmp(mode, "other") == 0 || strcmp(mode, "both") == 0) others();
    }
}
