// moved SECONDS: moves its own code to anonymous memory at the same address, as
// `node --use-largepages`, BOLT and ClickHouse do. Then it reads the clock there for this much CPU
// time.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

volatile long sink;

__attribute__((noinline)) void reads(void) {
    struct timespec time;
    for (int i = 0; i < 1000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &time);
        sink += time.tv_nsec;
    }
}

int main(int count, char **words) {
    uintptr_t here = (uintptr_t)main, start = 0, end = 0;
    char line[400];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (count == 2 && maps && fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || rights[2] != 'x') continue;
        if (from <= here && here < to) start = from, end = to;
    }
    if (start == 0) return 1;
    size_t size = end - start;
    void *copy = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return 1;
    memcpy(copy, (void *)start, size);
    if (mprotect(copy, size, PROT_READ | PROT_EXEC) != 0) return 1;
    // The old code is replaced in one system call, because it must not be missing in between.
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    if (mremap(copy, size, size, flags, (void *)start) == MAP_FAILED) return 1;
    clock_t limit = (clock_t)(atof(words[1]) * CLOCKS_PER_SEC);
    puts("moved");
    fflush(stdout);
    while (clock() < limit) reads();
}
