/* Sends itself 8000 times the SIGTRAP that the kernel sends for a breakpoint in the vDSO if the CPU
   does not name the breakpoint in DR6. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
    siginfo_t info = {.si_signo = SIGTRAP, .si_code = TRAP_BRKPT};
    info.si_addr = (void *)(getauxval(AT_SYSINFO_EHDR) + 0x800);
    /* Only to itself may a process send a signal with this code. */
    for (int i = 0; i < 8000; i++)
        if (syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGTRAP, &info)) return 2;
    return 0;
}
