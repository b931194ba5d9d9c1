// Parts of C++ functions: one with a linkage name, and one that has only a plain name in a namespace.
extern "C" {
#include "parts.h"
}

namespace {
struct Page {
  int size;
  ~Page() { fetch(size); }
};

// The symbols are `repaint` and `repaint.cold`.
extern "C" __attribute__((noinline, used)) int repaint(int page) {
  int size = fetch(page);
  if (__builtin_expect(size < 0, 0)) {
    complain(page, size);
    complain(size, page);
  }
  return size;
}
} // namespace

namespace paint {
// The symbols are `_ZN5paint7refreshEi` and `_ZN5paint7refreshEi.cold`. The clean-up after exceptions is cold, too.
__attribute__((noinline)) int refresh(int page) {
  Page one{page};
  if (__builtin_expect(repaint(page) > 77, 0)) {
    complain(page, 1);
    give_up(page);
  }
  return one.size;
}
} // namespace paint

extern "C" int paint_all(int page) {
  return paint::refresh(page) + repaint(page + 1);
}
