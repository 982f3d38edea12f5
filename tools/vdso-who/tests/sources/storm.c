/* storm MILLISECONDS: starts threads, forks, executes itself and sends itself signals. All threads
   and processes read the clock. Prints the number of rounds. The exit status is 0 if each thread,
   process and signal did what it should. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t queued, ticks;

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *reads(void *unused) {
    for (int i = 0; i < 100; i++) now();
    return unused;
}

static void on_signal(int number) {
    now();
    if (number == SIGALRM) ticks++; else queued++;
}

int main(int count, char **arguments) {
    reads(NULL);
    if (count != 2) return 3;
    if (!strcmp(arguments[1], "leaf")) return 7;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    struct itimerval timer = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &timer, NULL);
    long long end = now() + atoll(arguments[1]) * 1000000;
    int rounds = 0, sent = 0;
    for (; now() < end; rounds++) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++)
            if (pthread_create(&threads[i], NULL, reads, &threads[i])) return 4;
        pid_t child = fork();
        if (child == 0) {
            reads(NULL);
            execl("/proc/self/exe", "storm", "leaf", NULL);
            _exit(5);
        }
        for (int i = 0; i < 10; i++)
            if (!sigqueue(getpid(), SIGRTMIN, (union sigval){0})) sent++;
        for (int i = 0; i < 8; i++) {
            void *value;
            if (pthread_join(threads[i], &value) || value != &threads[i]) return 6;
        }
        int status;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) return 8;
    }
    timer = (struct itimerval){0};
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("%d rounds, %d ticks\n", rounds, (int)ticks);
    return queued == sent && ticks > 0 ? 0 : 9;
}
