// The interface of a C++20 module. The names of what it owns state the module: `_ZN3geoW8geometry4...`.
export module geometry;

namespace geo {
export inline int scaled(int size) { return size * 3 + 1; }

export __attribute__((noinline)) int area(int width, int height) {
  return scaled(width) * height;
}

struct Square {
  int side;
  __attribute__((noinline)) int twice() const;
};

int Square::twice() const { return area(side, 2); }

export __attribute__((noinline)) int perimeter(int side) {
  Square square{side};
  return square.twice() + scaled(side);
}
} // namespace geo
