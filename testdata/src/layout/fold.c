/* Three functions of one body for the linker to fold, and code that nobody calls for it to drop. */
#include "../inline/grid.h"

__attribute__((noinline)) int price_a(int x) {
  return sample(x) * 31 + 7;
}

__attribute__((noinline)) int price_b(int x) {
  return sample(x) * 31 + 7;
}

__attribute__((noinline)) static int price_c(int x) {
  int unit = sample(x);
  return unit * 31 + 7;
}

__attribute__((noinline)) int other_price(int x) {
  return sample(x) * 37 + 7;
}

__attribute__((noinline)) int unused(int x) {
  return sample(x) * 41 + 9;
}

__attribute__((noinline)) static int unused_too(int x) {
  return unused(x) + cell(x);
}

int (*unused_table)(int) = unused_too;

int fold_entry(int n) {
  return price_a(n) + price_b(n + 1) + price_c(n + 2) + other_price(n);
}
