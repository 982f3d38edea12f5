/* Links without libc, if the library needs nothing but memcpy. */

#include <vdso_time.h>

void *memcpy(void *to, const void *from, size_t size)
{
    while (size--) ((volatile char *)to)[size] = ((const char *)from)[size];
    return to;
}

int main(void)
{
    return vdso_time_clock_gettime(1, NULL) || vdso_time_time() < 0;
}
