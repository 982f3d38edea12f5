/* Calls the functions of parse_vdso.c as the kernel's selftests do, with its prototypes. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/time.h>

void vdso_init_from_sysinfo_ehdr(uintptr_t base);
void vdso_init_from_auxv(void *auxv);
void *vdso_sym(const char *version, const char *name);
size_t vdso_time_routes(char *text, size_t size);

#if defined(__x86_64__)
#define VERSION "LINUX_2.6"
#define NAME "__vdso_gettimeofday"
#elif defined(__aarch64__)
#define VERSION "LINUX_2.6.39"
#define NAME "__kernel_gettimeofday"
#else
#define VERSION "LINUX_2.6"
#define NAME "__vdso_gettimeofday"
#endif

#define EXPECT(condition) \
    if (!(condition)) { printf("line %d: %s\n", __LINE__, #condition); return 1; }

int main(void)
{
    unsigned long base = getauxval(AT_SYSINFO_EHDR);
    unsigned long auxv[] = {AT_PAGESZ, 4096, AT_SYSINFO_EHDR, base, 0, 0};
    unsigned long none[] = {AT_PAGESZ, 4096, 0, 0};
    if (!base)
        return 4; /* KSFT_SKIP */

    EXPECT(!vdso_sym(VERSION, NAME));
    vdso_init_from_sysinfo_ehdr(base);
    void *found = vdso_sym(VERSION, NAME);
    EXPECT(found);
    EXPECT(!vdso_sym("LINUX_9.9", NAME));
    EXPECT(!vdso_sym(VERSION, "no_such_function"));
    EXPECT(vdso_sym(NULL, NAME) == found);
    vdso_init_from_auxv(none);
    EXPECT(!vdso_sym(VERSION, NAME));
    vdso_init_from_auxv(auxv);
    EXPECT(vdso_sym(VERSION, NAME) == found);

    char text[4096] = "";
    EXPECT(vdso_time_routes(text, SIZE_MAX) == strlen(text));
    memset(text, 'x', sizeof text);
    EXPECT(vdso_time_routes(text, 5) > 5 && strlen(text) == 4 && text[5] == 'x');

    long (*function)(struct timeval *, void *);
    struct timeval before, now, after;
    memcpy(&function, &found, sizeof function);
    gettimeofday(&before, NULL);
    EXPECT(function(&now, NULL) == 0);
    gettimeofday(&after, NULL);
    EXPECT(!timercmp(&now, &before, <) && !timercmp(&after, &now, <));
    puts("vdso_sym() found " NAME);
    return 0;
}
