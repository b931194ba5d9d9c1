// Functions that end with the call of a function that never returns: the return address is behind their last byte.
extern "C" [[noreturn]] void stop(int code);

namespace ending {
// Padding follows, because the next function is aligned.
[[noreturn]] __attribute__((noinline)) void before_padding(int code) {
  stop(code);
}

__attribute__((aligned(64), noinline)) int aligned(int code) {
  return code * 7;
}

[[noreturn]] __attribute__((noinline)) void before_function(int code) {
  stop(code + 1);
}

__attribute__((noinline)) int following(int code) {
  return code * 5;
}

// The call is in an inlined function, too.
struct Checked {
  int value;
  static int get(const Checked &checked) {
    if (checked.value < 0)
      before_function(checked.value);
    return checked.value;
  }
};

__attribute__((noinline)) int sum(const Checked &left, const Checked &right) {
  return Checked::get(left) + Checked::get(right);
}
} // namespace ending
