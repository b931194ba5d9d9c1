/* Inlining four levels deep, through two headers of two folders. */
#include "level/mip.h"

volatile int g_trace;

__attribute__((noinline)) int sample(int x) {
  return g_trace * x;
}

__attribute__((noinline)) int paint(int x) {
  return pyramid(x) * 3;
}

__attribute__((noinline)) int choose(int x) {
  int picked = 0;
  switch (x & 7) {
  case 0: picked = pyramid(x); break;
  case 1: picked = mip(x); break;
  case 2: picked = row(x); break;
  default: picked = paint(x);
  }
  return picked;
}

__attribute__((noinline)) int depth(int n) {
  return n < 2 ? cell(n) : depth(n - 1) + depth(n - 2);
}

static int both(int x) {
  return choose(x) + paint(x + 1);
}

static int twice(int x) {
  int first = both(x);
  return first * both(first) + depth(x);
}

#ifndef LIBRARY
int main(int argc, char **argv) {
  (void)argv;
  int total = twice(argc) + plain_entry(argc);
  return total & 1;
}
#else
int inline_entry(int n) {
  return twice(n) + 1;
}
#endif
