/* Compiled without -g: only the symbol table knows these functions. */
#include "grid.h"

static __attribute__((noinline)) int plain_local(int x) {
  return x * g_trace + 1;
}

int plain_entry(int x) {
  return sample(plain_local(x)) + plain_local(x + 3);
}

__attribute__((visibility("hidden"))) int plain_hidden(int x) {
  return x ^ 0x55;
}
