/* threads short SECONDS: reads the clock only in threads that live for 0.5 ms.
   threads idle N SECONDS: reads the clock in the main thread, while N other threads wait.
   Prints the address of the vDSO, after the N threads have started. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

__attribute__((noinline)) static void *reads(void *nanos) {
    long long end = now() + (long long)nanos;
    while (now() < end) {}
    return NULL;
}

static void *waits(void *unused) {
    pause();
    return unused;
}

int main(int count, char **arguments) {
    int is_short = count == 3 && !strcmp(arguments[1], "short");
    int threads = is_short ? 0 : atoi(arguments[2]);
    long long nanos = atoll(arguments[count - 1]) * 1000000000LL;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_t thread;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread, &small, waits, NULL)) return 2;
    printf("%lx\n", getauxval(AT_SYSINFO_EHDR));
    fflush(stdout);
    long long end = now() + nanos;
    if (!is_short) reads((void *)nanos);
    while (is_short && now() < end)
        if (pthread_create(&thread, &small, reads, (void *)500000LL) || pthread_join(thread, NULL)) return 2;
    return 0;
}
