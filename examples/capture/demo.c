/* Crashes in the way that its argument names, and captures it on standard output. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"

static volatile int depth;
/* The compiler must not know that it is null. */
static volatile int *volatile nowhere;

static inline __attribute__((always_inline)) void write_null(void) {
    *nowhere = 1;
}

/* A leaf function, which has no frame of its own if the compiler leaves it out. */
__attribute__((noinline)) void crash_in_leaf(void) {
    write_null();
}

/* Calls itself until the stack is full. */
__attribute__((noinline)) int overflow(int level) {
    volatile char room[256];
    room[0] = (char)level;
    if (depth < 0) return room[0];
    return overflow(level + 1) + room[0];
}

__attribute__((noinline)) int middle(const char *how) {
    if (strcmp(how, "leaf") == 0) crash_in_leaf();
    if (strcmp(how, "trap") == 0) __builtin_trap();
    if (strcmp(how, "overflow") == 0) depth = overflow(0);
    if (strcmp(how, "here") == 0) capture_here(STDOUT_FILENO);
    return ++depth;
}

__attribute__((noinline)) int outer(const char *how) {
    return middle(how) + 1;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: demo leaf|trap|overflow|here\n");
        return 2;
    }
    if (capture_install(STDOUT_FILENO) != 0) {
        perror("capture_install");
        return 1;
    }
    return outer(arguments[1]) == 2 ? 0 : 1;
}
