/* Jump tables, tail calls, varargs, recursion, cold branches, ends without return: shapes of ranges. */
int touch(int x);

__attribute__((cold, noinline)) static void complain(int code) {
  touch(code);
  touch(code + 1);
}

__attribute__((noreturn, noinline)) static void give_up(int code) {
  complain(code);
  __builtin_trap();
}

int opcode(int op, int x) {
  switch (op) {
  case 0: return touch(x);
  case 1: return x * 3;
  case 2: complain(x); return -x;
  case 3: return touch(x + 1) ^ op;
  case 4: return x / (op + 3);
  case 5: return touch(touch(x));
  case 6: x ^= 0x12345678; return touch(x) + x;
  case 9: return x % 77;
  default: give_up(op);
  }
}

/* Ends in a jump to touch. */
int tail(int x) {
  return touch(x * 2 + 1);
}

int summed(int n, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, n);
  int total = 0;
  while (n--)
    total += opcode(__builtin_va_arg(list, int) & 7, n);
  __builtin_va_end(list);
  return total;
}

static int even(int n);
static __attribute__((noinline)) int odd(int n) {
  return n == 0 ? 0 : touch(even(n - 1));
}
static __attribute__((noinline)) int even(int n) {
  return n == 0 ? 1 : touch(odd(n - 1));
}

/* Always called with a constant: GCC makes a .constprop copy, and .part and .isra ones of its like. */
static __attribute__((noinline)) int scaled(const int *at, int by) {
  return *at ? touch(*at * by) + touch(by) : 0;
}

static int mostly_early(int *p, int n) {
  if (__builtin_expect(!p, 1))
    return n;
  for (int i = 0; i < n; i++) {
    *p += touch(i);
    if (__builtin_expect(*p == 99, 0))
      complain(*p);
  }
  return touch(*p) + opcode(n, *p);
}

int flow_entry(int n) {
  int cell = n;
  int total = scaled(&cell, 7) + scaled(&n, 7) + mostly_early(0, n);
  total += mostly_early(&cell, n) + mostly_early(&total, 3) + mostly_early(n > 4 ? &n : 0, 2);
  return total + summed(3, n, 2, cell) + even(n) + odd(n) + tail(n);
}

/* As far as an optimiser knows, nothing comes behind the last instruction. */
int falls_off(int n) {
  if (n > 3)
    return touch(n);
  __builtin_unreachable();
}

int after_falls_off(int n) {
  return falls_off(n + 4) - 1;
}
