/* Gets 8000 SIGTRAP as the kernel sends them for a breakpoint of the vDSO that no register names. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    siginfo_t info = {.si_signo = SIGTRAP, .si_code = TRAP_BRKPT};
    info.si_addr = (void *)(getauxval(AT_SYSINFO_EHDR) + 0x800);
    /* A process may send itself a signal with any content. */
    for (int i = 0; i < 8000; i++)
        if (syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGTRAP, &info)) return 2;
    return 0;
}
