// Functions for which GCC states no linkage name: inlined constructors, what is in an unnamed namespace, and lambdas.
extern "C" {
#include "parts.h"
}

namespace park {
class Gate {
public:
  explicit Gate(int width) : width(fetch(width)) {}
  ~Gate() { complain(width, 0); }
  int width;
};

namespace {
struct Fence {
  int length;
  int painted() const { return fetch(length) + 1; }
};
} // namespace

template <typename Size> struct Path {
  Size length;
  Size walked() const { return fetch(length) * 2; }
};

int enter(int width) {
  Gate gate{width};
  return gate.width + Fence{width}.painted();
}

int walk(int length) {
  auto doubled = [length](int step) { return fetch(step) * length; };
  return Path<int>{length}.walked() + doubled(length);
}
} // namespace park
