// calls clock|other|both SECONDS: system calls whose number is an argument. `clocks` reads a clock,
// `others` does not.
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

int main(int count, char **words) {
    clock_t end = (clock_t)(atof(words[2]) * CLOCKS_PER_SEC);
    while (count == 3 && clock() < end) {
        if (strcmp(words[1], "other") != 0) clocks();
        if (strcmp(words[1], "clock") != 0) others();
    }
}
