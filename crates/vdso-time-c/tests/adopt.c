/* Calls a time() that adds an hour, which libc's does not. */

#include <time.h>

int main(void)
{
    struct timespec before, after;
    time_t now, same;
    clock_gettime(CLOCK_REALTIME_COARSE, &before);
    same = time(&now);
    clock_gettime(CLOCK_REALTIME_COARSE, &after);
    return same != now || now - 3600 < before.tv_sec || now - 3600 > after.tv_sec;
}
