#pragma once

using size = decltype(sizeof 0);

extern "C" int measure(int x);

namespace scene {
inline namespace v1 {

struct Vec {
  double x, y;

  Vec operator+(const Vec &other) const { return {x + other.x, y + other.y}; }
  Vec &operator+=(const Vec &other) {
    *this = *this + other;
    return *this;
  }
  explicit operator bool() const { return x != 0 || y != 0; }
  double operator()(int axis) const { return axis ? y : x; }
};

} // namespace v1

struct Shape {
  virtual ~Shape();
  virtual double area() const = 0;
};

struct Named {
  virtual const char *name() const;
  virtual ~Named();
};

// Two bases, so that calls through Named go by a thunk.
struct Box : Shape, Named {
  double side;

  explicit Box(double side);
  ~Box() override;
  double area() const override;
  const char *name() const override;
};

template <class T, int N> struct Buffer {
  T items[N];
  int len = 0;

  void push(const T &item) {
    if (len < N)
      items[len++] = item;
    else
      spill(item);
  }

  __attribute__((noinline)) void spill(const T &item) {
    items[N - 1] = item;
    len = N;
  }

  template <class F> auto fold(F step, double init) const {
    double total = init;
    for (int i = 0; i < len; i++)
      total = step(total, items[i]);
    return total;
  }
};

} // namespace scene

inline int rounded(double x) {
  return measure(x < 0 ? int(x - 0.5) : int(x + 0.5));
}
