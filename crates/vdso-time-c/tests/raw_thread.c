/*
 * Reads the clocks in a thread without libc's thread-local storage: clone(2) sets fs to 0. With the
 * argument `first` the thread makes the first call of the process. x86_64.
 */

#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vdso_time.h>
#include <vdso_time_counter.h>

enum { STACK = 65536 };

static volatile long failures = -1;

static void thread(void)
{
    struct vdso_timespec now;
    struct vdso_timeval wall;
    unsigned cpu;
    long failed = 0;
    failed += vdso_time_clock_gettime(1, &now) != 0;
    failed += vdso_time_clock_getres(1, &now) != 0;
    failed += vdso_time_gettimeofday(&wall) != 0;
    failed += vdso_time_getcpu(&cpu, NULL) != 0;
    failed += vdso_time_time() < 1700000000;
    int64_t last = 0;
    for (int n = 0; n < 100000; n++) {
        int64_t counted = vdso_time_counter_monotonic();
        failed += counted < last;
        last = counted;
    }
    failures = failed;
}

/* The child begins on an empty stack, so it cannot return: it calls `thread`, and ends itself. */
static long start(char *top)
{
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS;
    long id;
    register long tid __asm__("r10") = 0;
    register long tls __asm__("r8") = 0;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "call *%[thread]\n\t"
                     "xor %%edi, %%edi\n\t"
                     "mov %[exit], %%eax\n\t"
                     "syscall\n"
                     "1:"
                     : "=a"(id)
                     : "0"((long)SYS_clone), "D"(flags), "S"(top), "d"(0L), "r"(tid), "r"(tls),
                       [thread] "r"(thread), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return id;
}

int main(int count, char **words)
{
    if (count < 2 || strcmp(words[1], "first") != 0)
        vdso_time_warm_up();
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || start(stack + STACK - 64) < 0) {
        perror("raw_thread");
        return 1;
    }
    while (failures < 0)
        usleep(1000);
    printf("%ld failures\n", failures);
    return failures != 0;
}
