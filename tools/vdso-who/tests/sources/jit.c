/* jit SECONDS [same|busy]: a just-in-time compiler that, like LuaJIT and Java, compiles into memory
   that it already has. It names its code in /tmp/perf-PID.map. `jit_a` reads the clock for this
   much CPU time. Then `jit_b` is compiled and does the same. With `same`, it is at the address of
   `jit_a`, otherwise it is in the same mapping at another address. With `busy`, the compiler first
   names 300,000 functions, and changes the permissions of a mapping all the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef long (*function)(void *clock, long count, struct timespec *time);

static unsigned char *code, *other;
static FILE *map;
static int is_busy;

static function compile(const char *name, long at) {
    /* push rbp; mov rbp, rsp; push rbx, r12, r13; sub rsp, 8; mov r12, rdi; mov rbx, rsi
       mov r13, rdx; again: mov edi, 1; mov rsi, r13; call r12; dec rbx; jnz again; restore; ret */
    static const unsigned char text[] = {
        0x55, 0x48, 0x89, 0xe5, 0x53, 0x41, 0x54, 0x41, 0x55, 0x48, 0x83, 0xec, 0x08, 0x49, 0x89, 0xfc, 0x48, 0x89,
        0xf3, 0x49, 0x89, 0xd5, 0xbf, 1, 0, 0, 0, 0x4c, 0x89, 0xee, 0x41, 0xff, 0xd4, 0x48, 0xff, 0xcb, 0x75, 0xf0,
        0x48, 0x83, 0xc4, 0x08, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0xc3};
    memcpy(code + at, text, sizeof text);
    fprintf(map, "%lx %zx %s\n", (long)(code + at), sizeof text, name);
    fflush(map);
    return (function)(code + at);
}

static void run(function reads, double seconds) {
    struct timespec start, now, time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do {
        reads(clock_gettime, 20000, &time);
        if (is_busy && (mprotect(other, 4096, PROT_READ | PROT_WRITE) || mprotect(other, 4096, PROT_READ | PROT_EXEC)))
            exit(2);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
}

int main(int count, char **arguments) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    double seconds = atof(arguments[1]);
    int is_same = count > 2 && !strcmp(arguments[2], "same");
    is_busy = count > 2 && !is_same;
    map = fopen(path, "w");
    code = mmap(0, 1 << 20, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    other = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!map || code == MAP_FAILED || other == MAP_FAILED) return 2;
    for (long i = 0; is_busy && i < 300000; i++) fprintf(map, "%lx 40 LazyCompile:~function_%ld /app/x.js:1\n", 0x10000000 + i * 64, i);
    run(compile("jit_a", 0), seconds);
    run(compile("jit_b", is_same ? 0 : 4096), seconds);
    unlink(path);
    return 0;
}
