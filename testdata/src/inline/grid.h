#pragma once

extern volatile int g_trace;
int sample(int x);
int plain_entry(int x);

/* The leaf of every chain: stores, then calls something that is never inlined. */
static inline __attribute__((always_inline)) int cell(int x) {
  g_trace = x;
  return sample(x + 4);
}

static inline __attribute__((always_inline)) int row(int x) {
  int sum = 0;
  for (int i = 0; i < x; i++)
    sum += cell(i) ^ x;
  return sum;
}
