// sandbox SECONDS: looks, from outside, like a program in a gVisor sandbox. It has code in a memory
// file of the sandbox, and the process has no vDSO.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words) {
    int file = memfd_create("runsc-memory", 0);
    if (count != 2 || ftruncate(file, 4096) != 0) return 1;
    char *code = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    if (code == MAP_FAILED) return 1;
    // The vDSO has one or two pages. If it has only one, the next page is not needed: it belongs to
    // the stack, or is not mapped.
    char *vdso = (char *)getauxval(AT_SYSINFO_EHDR);
    if (vdso == 0 || munmap(vdso, 8192) != 0) return 1;
    struct timespec start, now;
    syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &start);
    do {
        for (volatile int i = 0; i < 10000000; i++) {}
        syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec - start.tv_sec < atoi(words[1]));
}
