// Templates, lambdas, namespaces, an anonymous one, thunks, a static initialiser.
#include "shapes.hpp"

extern "C" void *malloc(size);
extern "C" void free(void *);

volatile int g_count;

extern "C" __attribute__((noinline)) int measure(int x) {
  return g_count * x;
}

namespace scene {

Shape::~Shape() { g_count = 1; }
Named::~Named() { g_count = 2; }
const char *Named::name() const { return "?"; }
Box::Box(double s) : side(s < 0 ? -s : s) {}
Box::~Box() { g_count = 3; }
double Box::area() const { return side * side; }
const char *Box::name() const { return "box"; }

} // namespace scene

scene::Box g_box(measure(3));

namespace {

struct Scaler {
  int factor;

  __attribute__((noinline)) int apply(int k) const {
    return rounded(factor * k * 0.5);
  }
};

__attribute__((noinline)) int scaled(int a) {
  static int calls = measure(7);
  return Scaler{a}.apply(a) + calls++;
}

} // namespace

template <class T> __attribute__((noinline)) T clamped(T value, T low, T high) {
  return value < low ? low : value > high ? high : value;
}

template <class... A> __attribute__((noinline)) double sum(A... terms) {
  return (0.0 + ... + terms);
}

double everything(int n) {
  scene::Buffer<scene::Vec, 8> path;
  scene::Vec at{0, 0};
  for (int i = 0; i < n; i++) {
    path.push({double(i), double(measure(i))});
    at += path.items[i & 7];
  }
  auto step = [&](double total, const scene::Vec &v) {
    auto extra = [&] { return at ? double(rounded(v(1))) : 0.5; };
    return total + v(0) * v(1) + extra();
  };
  double r = path.fold(step, 1.0);
  int (*callback)(int) = [](int q) -> int { return scaled(q) + q; };
  r += callback(n) + clamped<int>(n, 1, 9) + clamped<double>(r, 0., 1.);
  return r + sum(1, 2.5f, n, 'c') + g_box.area();
}

extern "C" int shapes_entry(int n) {
  scene::Box *box = new scene::Box(n);
  scene::Shape *shape = box;
  double total = everything(n) + shape->area();
  delete shape;
  return int(total);
}

void *operator new(size n) { return malloc(n); }
void operator delete(void *p) noexcept { free(p); }
void operator delete(void *p, size) noexcept { free(p); }
