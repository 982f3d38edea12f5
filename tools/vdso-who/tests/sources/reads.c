/* reads ROUNDS NANOSECONDS: makes rounds of four clock reads, three in often() and one in seldom(),
   until one of the limits is reached. Prints the number of rounds and the nanoseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) long long often(void) {
    long long sum = 0;
    for (int i = 0; i < 3; i++) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        sum += time.tv_nsec;
    }
    return sum;
}

__attribute__((noinline)) long long seldom(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

volatile long long sink;

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 0;
    long long limit = count > 2 ? atoll(arguments[2]) : 0;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    long long start = time.tv_sec * 1000000000LL + time.tv_nsec, passed = 0;
    long round = 0;
    while (round < rounds && passed < limit) {
        sink += often();
        passed = seldom() - start;
        round++;
    }
    printf("%ld %lld\n", round, passed);
    return 0;
}
