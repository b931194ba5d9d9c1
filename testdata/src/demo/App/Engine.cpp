#include "Engine.hpp"
#include "../Kit/kit.h"

namespace engine {

namespace {

template <class T> T blended(T over, T under, T alpha) {
  return (over * alpha + under * (T(256) - alpha)) / T(256);
}

class PaintVisitor final : public Visitor {
  int row;

  int texel(const Node &node) const {
    return dk_tile_fetch(node.key + row) & 0xff;
  }

public:
  explicit PaintVisitor(int at) : row(at) {}

  int leaf(const Node &node) override {
    return blended<int>(texel(node), row, 128);
  }
};

} // namespace

__attribute__((noinline)) int Renderer::visit(const Node &node, Visitor &visitor) {
  if (!node.count)
    return visitor.leaf(node) + 1;
  int drawn = 0;
  node.each_child([&](const Node &child) {
    drawn += visit(child, visitor);
  });
  return drawn;
}

__attribute__((noinline)) int Renderer::draw_row(int row) {
  PaintVisitor painter(row);
  return with_depth([&] {
    return visit(*root, painter) * depth;
  });
}

} // namespace engine
