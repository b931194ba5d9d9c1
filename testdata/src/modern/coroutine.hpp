// The parts of <coroutine> that the compilers ask for.
namespace std {
template <class Result, class...> struct coroutine_traits {
  using promise_type = typename Result::promise_type;
};

template <class Promise = void> struct coroutine_handle;

template <> struct coroutine_handle<void> {
  static coroutine_handle from_address(void *frame) noexcept { return {frame}; }
  void resume() const { __builtin_coro_resume(frame); }
  void destroy() const { __builtin_coro_destroy(frame); }
  void *frame;
};

template <class Promise> struct coroutine_handle {
  static coroutine_handle from_address(void *frame) noexcept { return {frame}; }
  static coroutine_handle from_promise(Promise &promise) {
    return {__builtin_coro_promise(&promise, alignof(Promise), true)};
  }
  void *address() const noexcept { return frame; }
  operator coroutine_handle<>() const noexcept { return {frame}; }
  void *frame;
};

struct suspend_always {
  bool await_ready() const noexcept { return false; }
  void await_suspend(coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};
} // namespace std
