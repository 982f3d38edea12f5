/* Reads the clock in an IFUNC resolver of a static glibc program. errno does not exist yet. */

#include <stddef.h>
#include <sys/auxv.h>
#include <vdso_time.h>

static int failed = -1;

static int result(void)
{
    return failed;
}

static int (*resolver(void))(void)
{
    struct vdso_timespec time = {0, 0};
    failed = vdso_time_set_address((void *)getauxval(AT_SYSINFO_EHDR)) != 0;
    failed |= vdso_time_clock_gettime(1, &time) != 0 || time.tv_sec + time.tv_nsec == 0;
    failed |= vdso_time_clock_getres(1, &time) != 0 || vdso_time_getcpu(NULL, NULL) != 0;
    failed |= vdso_time_gettimeofday(NULL) != 0 || vdso_time_time() < 1700000000;
    /* The vDSO is in use. */
    failed |= vdso_time_set_address(NULL) != -16;
    return result;
}

int resolved(void) __attribute__((ifunc("resolver")));

int main(void)
{
    return resolved();
}
