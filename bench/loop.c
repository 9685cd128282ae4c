/* What runs inside every sandbox to see what its seal costs. Prints lines of a name and a number.

   loop execs COUNT CALLERS PROGRAM   COUNT times posix_spawn and wait, by CALLERS processes at once:
                                      "us" for one, as its caller sees it, and "per_s" for all together
   loop calls [FILTER]                nanoseconds of processor time of some system calls; with the name of
                                      a file, the filter in it is loaded first */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void call_execs(long count, char *program) {
    char *arguments[] = {program, NULL};
    for (long i = 0; i < count; i++) {
        pid_t pid;
        int status;
        if (posix_spawn(&pid, program, NULL, NULL, arguments, environ)) _exit(1);
        if (waitpid(pid, &status, 0) < 0 || status) _exit(1);
    }
}

static int execs(long count, int callers, char *program) {
    double began = now(CLOCK_MONOTONIC);
    for (int i = 0; i < callers; i++)
        if (fork() == 0) {
            call_execs(count / callers, program);
            _exit(0);
        }
    for (int i = 0; i < callers; i++) {
        int status;
        if (wait(&status) < 0 || status) return 1;
    }
    double took = now(CLOCK_MONOTONIC) - began;
    printf("us %.1f\nper_s %.1f\n", took / 1e3 / (count / callers), count / callers * callers / took * 1e9);
    return 0;
}

#define MEASURE(name, times, call) do { \
    double began = now(CLOCK_PROCESS_CPUTIME_ID); \
    for (long i = 0; i < (times); i++) { call; } \
    printf(name " %.1f\n", (now(CLOCK_PROCESS_CPUTIME_ID) - began) / (times)); \
} while (0)

static int calls(const char *filter) {
    static struct sock_filter code[4096];
    char byte;
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    if (filter) {
        int fd = open(filter, O_RDONLY);
        struct sock_fprog program = {.len = read(fd, code, sizeof code) / sizeof code[0], .filter = code};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
    }
    MEASURE("getpid", 1000000, syscall(SYS_getpid));
    MEASURE("read", 1000000, syscall(SYS_read, zero, &byte, 1));
    MEASURE("write", 1000000, syscall(SYS_write, null, &byte, 1));
    MEASURE("openat+close", 200000, close(openat(AT_FDCWD, "/dev/null", O_RDONLY)));
    MEASURE("mmap+munmap", 200000,
            munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096));
    MEASURE("socket+close", 100000, close(syscall(SYS_socket, 2, 1, 0)));
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "execs")) return execs(atol(argv[2]), atoi(argv[3]), argv[4]);
    if (argc >= 2 && !strcmp(argv[1], "calls")) return calls(argc > 2 ? argv[2] : NULL);
    return 2;
}
