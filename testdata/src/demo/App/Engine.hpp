#pragma once

namespace engine {

struct Node {
  const Node *children[4];
  int count;
  int key;

  template <class F> void each_child(F &&visit) const {
    for (int i = 0; i < count; i++)
      visit(*children[i]);
  }
};

struct Visitor {
  virtual int leaf(const Node &node) = 0;
};

class Renderer {
  const Node *root = nullptr;
  int depth = 0;

  template <class Body> int with_depth(Body &&body) {
    depth++;
    int drawn = body();
    depth--;
    return drawn;
  }

  int visit(const Node &node, Visitor &visitor);

public:
  int draw_row(int row);
};

} // namespace engine
