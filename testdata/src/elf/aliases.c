/* Several names for one function, weak ones, hidden ones, functions in sections of their own. */
volatile int g_touched;

__attribute__((noinline)) int touch(int x) {
  g_touched = x;
  return x + g_touched;
}

/* touch_alias and touch_weak lie at touch's address; the sizes are the same. */
int touch_alias(int x) __attribute__((alias("touch")));
int touch_weak(int x) __attribute__((weak, alias("touch")));
__attribute__((visibility("hidden"))) int touch_hidden(int x) __attribute__((alias("touch")));

__attribute__((weak, noinline)) int fallback(int x) {
  return touch(x) * 3;
}

__attribute__((visibility("protected"))) int guarded(int x) {
  return fallback(x) + 1;
}

static __attribute__((noinline, section(".text.first"))) int first(int x) {
  return touch(x) + 11;
}

/* Neither .text nor named like it. */
__attribute__((noinline, section("trampolines"))) int bounce(int x) {
  return first(x) - 5;
}

static __thread int t_depth;

__attribute__((constructor)) static void on_load(void) {
  t_depth = touch(1);
}

__attribute__((destructor)) static void on_unload(void) {
  touch(t_depth);
}

int aliases_entry(int n) {
  t_depth += n;
  return touch_alias(n) + touch_weak(n) + touch_hidden(n) + guarded(n) + bounce(n) + first(n);
}
