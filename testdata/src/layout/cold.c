/* Unlikely branches for hot/cold splitting: hot parts keep their name, cold ones get `.cold.1`. */
#include "../inline/grid.h"

__attribute__((cold, noinline)) void report(int a, int b);
void report(int a, int b) {
  g_trace = a ^ b;
}

__attribute__((noinline)) int step(int x) {
  int r = sample(x);
  if (__builtin_expect(r < 0, 0)) {
    report(r, x);
    for (int i = 0; i < 5; i++) {
      report(i, r);
      r += cell(i);
    }
    report(r, 3);
    return r * 3;
  }
  return r + row(x);
}

int steps(int x) {
  int total = 0;
  for (int i = 0; i < x; i++) {
    total += step(i);
    if (__builtin_expect(total == 12345, 0)) {
      report(total, i);
      report(i, 1);
      total = sample(total) + sample(i);
      report(total, 2);
    }
  }
  return total;
}
