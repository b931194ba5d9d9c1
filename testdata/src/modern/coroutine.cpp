// A coroutine. The compiler splits it into the function that starts it and parts that other code calls by pointer:
// clang makes `.resume`, `.destroy` and, without optimisation, `.cleanup`; GCC makes `.actor` and `.destroy`.
#include "coroutine.hpp"

#ifdef SECOND
#define NAMESPACE optimised
#else
#define NAMESPACE plain
#endif

extern "C" void take(int number);

namespace NAMESPACE {
struct Numbers {
  struct promise_type {
    int number;
    Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int value) {
      number = value;
      return {};
    }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};

Numbers count(int end) {
  for (int i = 0; i < end; ++i) {
    take(i);
    co_yield i * 3;
  }
  take(-1);
}
} // namespace NAMESPACE
