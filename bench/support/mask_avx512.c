/* Hides AVX-512, VNNI, bf16 and AMX from a program: answers the invalid instructions that bench/avx2.py writes over
   `cpuid`, and opens the file that MASKED_CPUINFO names in place of /proc/cpuinfo. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

static const uint32_t LEAF_7_EBX = 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31;
static const uint32_t LEAF_7_ECX = 1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14;
static const uint32_t LEAF_7_EDX = 1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25;

static void answer(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint32_t leaf = registers[REG_RAX], subleaf = registers[REG_RCX], eax, ebx, ecx, edx;
    if (memcmp((const void *)registers[REG_RIP], "\x0f\x0b", 2) != 0) { /* another invalid instruction */
        signal(number, SIG_DFL);
        return;
    }
    __cpuid_count(leaf, subleaf, eax, ebx, ecx, edx);
    if (leaf == 7 && subleaf == 0) {
        ebx &= ~LEAF_7_EBX;
        ecx &= ~LEAF_7_ECX;
        edx &= ~LEAF_7_EDX;
    } else if (leaf == 7) { /* AVX-VNNI and what came later */
        eax = edx = 0;
    }
    registers[REG_RAX] = eax;
    registers[REG_RBX] = ebx;
    registers[REG_RCX] = ecx;
    registers[REG_RDX] = edx;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void install(void) {
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, NULL);
}

static int open_file(const char *path, int flags, va_list rest) {
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    const char *masked = strcmp(path, "/proc/cpuinfo") == 0 ? getenv("MASKED_CPUINFO") : NULL;
    return (int)syscall(SYS_openat, AT_FDCWD, masked ? masked : path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int file = open_file(path, flags, rest);
    va_end(rest);
    return file;
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
