/*
 * Prints results of libm. The test compiles it as C and as C++, with the static library before -lm
 * and without it, and compares what it prints.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <vdso_time.h>

static volatile double inputs[] = {-1.0, 0.3, 2.5, 7.0, 1e300};
static volatile double zero;

static void print(const char *name, double result)
{
    unsigned char bytes[sizeof result];
    size_t at;
    memcpy(bytes, &result, sizeof result);
    printf("%s ", name);
    for (at = 0; at < sizeof result; at++)
        printf("%02x", bytes[at]);
    printf(" errno %d\n", errno);
    errno = 0;
}

int main(void)
{
    size_t at;
    for (at = 0; at < sizeof inputs / sizeof *inputs; at++) {
        double x = inputs[at];
        print("sqrt", sqrt(x));
        print("cbrt", cbrt(x));
        print("fmod", fmod(x, zero));
        print("floor", floor(x));
        print("rint", rint(x));
        print("fma", fma(x, x, -x));
        print("fdim", fdim(x, 1e308));
    }
#ifdef LINKED
    return vdso_time_time() < 0;
#else
    return 0;
#endif
}
