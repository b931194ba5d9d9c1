/* Line 0, #line to other files, very large lines, `nodebug`, functions that end without returning. */
#include "../inline/grid.h"

int line_zero(int x) {
  int r = sample(x);
#line 0 "layout/lines.c"
  r += sample(r);
#line 5 "gen/../other/grammar.y"
  r ^= g_trace;
#line 100000 "/abs/elsewhere/grammar.y"
  r -= sample(r);
#line 70000 "layout/lines.c"
  return r;
}
#line 17 "layout/lines.c"
__attribute__((nodebug, noinline)) int no_debug(int x) {
  return sample(x) + 5;
}

__attribute__((noinline)) int after_no_debug(int x) {
  return no_debug(x) - 1;
}

int ends_in_trap(int x) {
  if (x)
    return sample(x);
  __builtin_trap();
}

void unreachable(void) {
  __builtin_unreachable();
}

int after_unreachable(int a) {
  return sample(a);
}
