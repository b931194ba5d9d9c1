/* Crashes in the way that the first argument names. Compiled without frame pointers. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline, noclone))

volatile int *volatile nowhere;
volatile int sink;

/* A leaf: it calls nothing, and saves nothing. */
KEPT int leaf(int a) { return a + *nowhere; }

/* Where the handler of the signal ends up. */
KEPT int in_handler(int a) {
  volatile char buffer[64];
  buffer[a & 63] = (char)a;
  return buffer[a & 31] + leaf(a);
}

static void handler(int signal) { sink = in_handler(signal) + 1; }

/* Its prologue saves registers and makes room, one instruction at a time. */
KEPT int middle(int a, int b, int c, int d) {
  volatile char buffer[200];
  int first = a * b, second = c * d;
  memset((char *)buffer, a, sizeof buffer);
  first += puts("middle");
  second += leaf(first);
  return first + second + buffer[a & 127] + b + d;
}

KEPT int outer(int a) {
  int result = middle(a, a + 1, a + 2, a + 3);
  return result + a;
}

static int compare(const void *left, const void *right) {
  return outer(*(const int *)left - *(const int *)right) + 1;
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "leaf";
  if (strcmp(how, "handler") == 0) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGSEGV, &action, NULL);
  }
  if (strcmp(how, "callback") == 0) {
    int numbers[3] = {3, 1, 2};
    qsort(numbers, 3, sizeof numbers[0], compare);
    return numbers[0];
  }
  return outer(argc);
}
