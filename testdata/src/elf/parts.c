/* GCC moves the cold code of a function to a part of its own, `f.cold`, and states both as ranges of one subprogram. */
#include "parts.h"

static int log_size;

/* C has no linkage names. The symbols are `reload` and, below it, `reload.cold`. */
int reload(int page) {
  int size = fetch(page);
  if (__builtin_expect(size < 0, 0)) {
    log_size += page;
    complain(page, size);
    complain(size, log_size);
  }
  return fetch(size) + log_size;
}

/* GCC makes a copy for the one value of `by`. The symbol is `scale.constprop.0`. */
static __attribute__((noinline)) int scale(int page, int by) {
  return fetch(page) * by - by;
}

/* Another function is inlined into both parts. */
int rescale(int page) {
  int size = scale(page, 7) + scale(page + 1, 7);
  if (__builtin_expect(size > 4000, 0)) {
    log_size = size;
    complain(size, 1);
    complain(twice(size), 2);
  }
  return twice(size);
}
