// Shares templates, inline functions and a static function's name with drain.cpp.
#include "pool.hpp"

namespace pool {

static __attribute__((noinline)) int check(int x) {
  return shared_step(x) * 2;
}

int fill(Writer &to, int n) {
  for (int at = 0; at < n; at++)
    to.write(at, check(at));
  return dive<5>(n);
}

// Two instances of one machine code, for the linker to fold.
template <class T> __attribute__((noinline)) int weigh(const T *items, int n) {
  int total = 0;
  for (int at = 0; at < n; at++)
    total += touch(int(items[at]));
  return total;
}

int weights(const int *a, const unsigned *b, const short *c, int n) {
  return weigh(a, n) + weigh(b, n) + weigh(c, n);
}

} // namespace pool

extern "C" int fill_entry(int n) {
  pool::Ring<short, 16> shorts;
  pool::Ring<long, 8> longs;
  const int three[3] = {n, 2, 3};
  const unsigned also[3] = {1, 2, unsigned(n)};
  const short shorter[3] = {1, short(n), 3};
  int total = pool::fill(shorts, n) + pool::fill(longs, n);
  total += longs.each([&](long &v, int at) { return int(v) + at * total; });
  return total + pool::weights(three, also, shorter, 3);
}
