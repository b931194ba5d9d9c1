#pragma once
#include "../grid.h"

static inline int mip(int x) {
  if (x > 10)
    return row(x) + cell(x); /* two call sites on one line */
  return row(x * 2);
}

static inline int pyramid(int x) {
  return mip(x) - mip(x + 1);
}
