// Exceptions with landing pads and cold parts, virtual calls, a function-local static; see fill.cpp for its other half.
#include "pool.hpp"

namespace pool {

Counted::~Counted() { touch(count); }

// The same name in another unit, with another body.
static __attribute__((noinline)) int check(int x) {
  return x < 0 ? touch(-x) : x;
}

int drain(Reader &from, int n) {
  int total = 0;
  for (int at = 0; at < n; at++) {
    try {
      total += check(from.read(at)) + dive<5>(at);
    } catch (const Error &error) {
      total -= error.code;
      from.add(shared_step(total));
    } catch (...) {
      return -1;
    }
  }
  return total;
}

namespace {

struct Guard {
  int &level;
  explicit Guard(int &level) : level(level) { level++; }
  ~Guard() { touch(level--); }
};

} // namespace

int nested(int n) {
  int level = 0;
  Guard outer(level);
  auto twice = [&](auto step) {
    Guard inner(level);
    return step(n) + step(n + 1);
  };
  return twice([](int x) { return dive<4>(x); }) + twice([&](int x) { return check(x) + level; });
}

} // namespace pool

extern "C" int drain_entry(int n) {
  pool::Ring<short, 16> ring;
  ring.write(n, 3);
  ring.turn(n);
  return pool::drain(ring, n) + pool::nested(n) + ring.each([](short &v, int at) { return v * at; });
}
